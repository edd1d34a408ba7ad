#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| engine_ssz_proxy_fuzz::jwt(input));
