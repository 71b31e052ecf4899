//! A terminal in full-screen mode. It is restored at the end, after a panic, after Ctrl-C and after SIGTERM.

use std::{
    io::{self, IsTerminal as _, Write as _},
    panic,
    sync::Once,
};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    execute, queue,
    terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size},
};
use tokio::sync::mpsc;

/// A key, or a change of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character.
    Character(char),
    /// Arrow keys, page keys, and the keys for the ends of a list.
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    Enter,
    Escape,
    /// Ctrl-C, which does not end the program in this mode.
    Interrupt,
    /// The size of the terminal has changed.
    Resized,
}

/// The terminal in full-screen mode.
pub(crate) struct Drawn;

impl Drawn {
    /// Enters full-screen mode, on a screen other than the shell's.
    ///
    /// # Errors
    /// If this is not a terminal.
    pub(crate) fn begin() -> io::Result<Self> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Err(io::Error::other("standard input and output are not a terminal"));
        }
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let default = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                restore();
                default(panicked);
            }));
        });
        enable_raw_mode()?;
        let drawn = Self;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(drawn)
    }

    /// The number of columns and of lines.
    pub(crate) fn size() -> (usize, usize) {
        size().map_or((80, 24), |(columns, lines)| (columns.into(), lines.into()))
    }

    /// Draws these lines; the line with the index `marked` in reverse video. The frame is written at once, so nothing
    /// flickers.
    pub(crate) fn draw(&self, lines: &[String], marked: Option<usize>) -> io::Result<()> {
        let mut frame = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            queue!(frame, MoveTo(0, number as u16))?;
            match marked == Some(number) {
                true => write!(frame, "\x1b[7m{line}\x1b[0m")?,
                false => write!(frame, "{line}")?,
            }
            queue!(frame, Clear(ClearType::UntilNewLine))?;
        }
        queue!(frame, Clear(ClearType::FromCursorDown))?;
        let mut out = io::stdout().lock();
        out.write_all(&frame)?;
        out.flush()
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    // A terminal that is gone cannot be restored.
    drop(execute!(io::stdout(), LeaveAlternateScreen, Show));
    drop(disable_raw_mode());
}

/// The keys typed from now on, until the terminal is gone.
///
/// # Errors
/// If the system does not provide a thread.
pub(crate) fn keys() -> io::Result<mpsc::Receiver<Key>> {
    let (sender, keys) = mpsc::channel(64);
    let read = move || {
        while let Ok(event) = event::read() {
            if let Some(key) = key_of(&event)
                && sender.blocking_send(key).is_err()
            {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".into()).spawn(read)?;
    Ok(keys)
}

fn key_of(event: &Event) -> Option<Key> {
    let KeyEvent { code, modifiers, kind, .. } = match event {
        Event::Resize(..) => return Some(Key::Resized),
        Event::Key(key) => *key,
        _ => return None,
    };
    if kind == KeyEventKind::Release {
        return None;
    }
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(character) => Key::Character(character),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        _ => return None,
    })
}
