//! The `engine-ssz-proxy` program.

fn main() -> std::process::ExitCode {
    engine_ssz_proxy::cli::run()
}
