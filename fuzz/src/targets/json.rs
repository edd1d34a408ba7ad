//! An object as serde_json finds it, its values untouched.

use serde_json::value::RawValue;

/// The members in their order; `None` if the text is no object, or a name cannot be a string: half a
/// surrogate pair.
pub fn members(object: &str) -> Option<Vec<(String, &str)>> {
    struct Members<'t>(Vec<(String, &'t str)>);

    impl<'de> serde::Deserialize<'de> for Members<'de> {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Visitor;

            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Members<'de>;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Self::Value, A::Error> {
                    let mut members = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                        members.push((name, value.get()));
                    }
                    Ok(Members(members))
                }
            }

            from.deserialize_map(Visitor)
        }
    }

    serde_json::from_str::<Members<'_>>(object).ok().map(|members| members.0)
}

/// The text of the one member of that name; `None` if there is none, or several.
pub fn only<'t>(members: &[(String, &'t str)], name: &str) -> Option<&'t str> {
    let mut named = members.iter().filter(|(other, _)| other == name);
    named.next().filter(|_| named.next().is_none()).map(|(_, value)| *value)
}
