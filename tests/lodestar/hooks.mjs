// Cuts the one import edge of the engine client that would load KZG and the builder. The engine
// client itself is untouched.
import {register} from "node:module";

const resolver = `
export async function resolve(specifier, context, next) {
  const fromMetadata = context.parentURL?.endsWith("/util/metadata.js");
  if (specifier === "../execution/index.js" && fromMetadata) {
    return next("../execution/engine/interface.js", context);
  }
  return next(specifier, context);
}`;

register("data:text/javascript," + encodeURIComponent(resolver));
