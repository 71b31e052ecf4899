//! Tests the view through keys and answers, for terminals of any size.

use evoxo_proto::v1;

use super::*;

fn view(runs: u64, workers: u64) -> View {
    let run = |number: u64| v1::Run {
        name: format!("run{number:03}"),
        state: if number.is_multiple_of(2) { RunState::Running } else { RunState::Finished }.into(),
        rounds_done: number,
        rounds_total: 1000,
        workers: 1,
        ..v1::Run::default()
    };
    let worker = |session: u64| v1::Worker {
        session,
        name: format!("lab{session:03}\u{1b}[2J"),
        slots: 2,
        slots_busy: 1,
        connected_ms: 60_000,
        tasks_last_minute: 60 * session,
        ..v1::Worker::default()
    };
    let lost =
        v1::LostWorker { name: "lab9".into(), reason: "its connection ended".into(), ..v1::LostWorker::default() };
    let mut view = View::new("lab1:7600".into());
    let workers = (1..=workers).map(worker).collect();
    view.see((0..runs).map(run).collect(), v1::ListWorkersResponse { workers, lost: vec![lost], cordons: Vec::new() });
    view
}

fn marked(view: &mut View) -> String {
    let (text, marked) = view.draw(80, 24);
    text[marked.unwrap()].split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn the_screen_is_filled_at_every_size() {
    for (runs, workers) in [(0, 0), (1, 0), (3, 2), (1000, 1), (2, 1000), (300, 300)] {
        for (columns, height) in [(1, 1), (5, 3), (40, 10), (80, 24), (200, 60)] {
            let mut view = view(runs, workers);
            let (text, marked) = view.draw(columns, height);
            assert_eq!(text.len(), height, "{runs} {workers} {columns} {height}");
            assert!(text.iter().all(|line| line.chars().count() <= columns && !line.contains('\u{1b}')));
            assert!(marked.is_none_or(|line| line < text.len()));
        }
    }
}

#[test]
fn both_lists_are_visible() {
    let (text, _) = view(100, 1000).draw(80, 24);
    assert_eq!(text[0], "lab1:7600: 50 of 100 runs active; 1000 workers; 1000 of 2000 slots busy; 500500…");
    assert_eq!(text[1], "RUNS by state (1 to 9 of 100)");
    assert!(text[2].starts_with("  run     state "), "{}", text[2]);
    assert!(text.iter().any(|line| line == "WORKERS by name (1 to 8 of 1000)"), "{text:#?}");
    assert!(text[23].starts_with("q quit"));
}

/// The notice that no worker computes a run is at the beginning, where no terminal cuts it off. The number of workers is shown
/// only for runs that go on.
#[test]
fn the_warning_about_missing_workers_fits_a_narrow_screen() {
    let mut view = view(2, 0);
    view.runs.iter_mut().filter(|run| run.state() == RunState::Running).for_each(|run| run.workers = 0);
    let (text, _) = view.draw(80, 24);
    assert!(text[0].starts_with("lab1:7600: NO WORKER for a run; 1 of 2 runs active; 0 workers"), "{}", text[0]);
    let row = |name: &str| text.iter().find(|line| line.contains(name)).unwrap().trim_end();
    assert!(row("run000").contains(" 0  no worker") && row("run001").ends_with("0.1 %"), "{text:#?}");
}

#[test]
fn the_selection_moves_and_stays_on_its_entry() {
    let mut view = view(100, 50);
    assert_eq!(marked(&mut view), "run000");
    assert_eq!(view.press(Key::Down, 24), None);
    assert_eq!(marked(&mut view), "run002", "running runs come first");
    view.press(Key::Character('s'), 24);
    assert_eq!(marked(&mut view), "run002");
    view.press(Key::Down, 24);
    assert_eq!(marked(&mut view), "run003", "by name");
    view.press(Key::End, 24);
    assert_eq!(marked(&mut view), "run099");
    view.press(Key::Home, 24);
    view.press(Key::PageDown, 24);
    assert_eq!(marked(&mut view), "run008");
    view.press(Key::Tab, 24);
    view.press(Key::Character('s'), 24);
    view.press(Key::Home, 24);
    assert_eq!(marked(&mut view), "lab050", "by rate");
}

/// Nothing is done before the person confirms it.
#[test]
fn orders_need_a_confirmation() {
    let mut view = view(2, 2);
    assert_eq!(view.press(Key::Character('p'), 24), None);
    assert_eq!(view.press(Key::Character('n'), 24), None);
    assert_eq!(view.press(Key::Character('y'), 24), None, "the question was answered with no");
    view.press(Key::Character('p'), 24);
    assert_eq!(view.press(Key::Resized, 12), None);
    assert_eq!(
        view.press(Key::Character('y'), 12),
        Some(Order::Pause("run000".into())),
        "a change of size is not an answer"
    );
    view.press(Key::Character('c'), 24);
    assert_eq!(view.press(Key::Character('y'), 24), Some(Order::Resume("run000".into())));
    view.press(Key::Character('d'), 24);
    assert_eq!(view.press(Key::Character('y'), 24), None, "runs are not drained");
    view.press(Key::Tab, 24);
    view.press(Key::Character('d'), 24);
    assert!(view.draw(100, 24).0[22].contains("(session 1) finish its tasks and leave? y"));
    assert!(matches!(view.press(Key::Character('y'), 24), Some(Order::Drain(1, _))));
    assert_eq!(view.press(Key::Character('q'), 24), Some(Order::Quit));
}

/// The message stays while the coordinator cannot be reached, and hides no question.
#[test]
fn an_unreachable_coordinator_is_reported_until_it_is_back() {
    let mut view = view(2, 2);
    view.press(Key::Character('p'), 24);
    view.miss("no coordinator answers".into());
    let (text, _) = view.draw(80, 24);
    assert_eq!((&*text[0], &*text[22]), ("no coordinator answers", "pause run000? y: yes, any other key: no"));
    view.see(Vec::new(), v1::ListWorkersResponse::default());
    assert!(view.draw(80, 24).0[0].starts_with("lab1:7600: 0 of 0 runs active"));
}
