//! The log of one test.

use std::{
    io::Write,
    sync::{Arc, LazyLock, Mutex},
};
use tracing::{Dispatch, level_filters::LevelFilter, subscriber::DefaultGuard};

/// What the thread of the test logs, from `info` on, while this lives.
pub struct Log {
    page: Page,
    _logging: DefaultGuard,
}

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// While there is one subscriber alone, what another thread logs first is asked of that thread, which
/// has none, and is off for good. So there is always another one.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| {
    let lines = tracing_subscriber::fmt().with_max_level(LevelFilter::INFO);
    Dispatch::new(lines.with_writer(std::io::sink).finish())
});

impl Log {
    pub fn of_this_thread() -> Self {
        LazyLock::force(&ANOTHER);
        let page = Page::default();
        let writer = page.clone();
        let lines = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        Self { page, _logging: tracing::subscriber::set_default(lines) }
    }

    /// The lines of that level, such as `WARN`.
    pub fn lines(&self, level: &str) -> Vec<String> {
        let text = String::from_utf8(self.page.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .filter(|line| line.contains(&format!(" {level} ")))
            .map(str::to_owned)
            .collect()
    }
}
