internal import Activity
import Locking

/// Determines when to show a network activity indicator. This corresponds to AFNetworking's
/// `AFNetworkActivityIndicatorManager`.
///
///     ActivityIndicator.shared.onChange = { isVisible in spinner.isHidden = !isVisible }
///     ActivityIndicator.shared.isEnabled = true
///
/// Showing and hiding are delayed: a request that ends soon does not show the indicator, and a
/// short pause between two requests does not hide it. Tasks of sessions that are not suspended are
/// counted automatically (``SessionConfiguration/activityIndicator``), one each however many
/// requests they make. Count other work with ``increment()`` and ``decrement()``.
///
/// On each change, ``isVisible`` has the new value first, then ``onChange`` is called, and then the
/// sequences from ``updates()`` receive the value.
public final class ActivityIndicator: Sendable {
    /// Calls a function after a delay, unless the returned function is called before.
    typealias Timer =
        @Sendable (
            _ milliseconds: Int64, _ fired: @escaping @Sendable () -> Void
        ) -> @Sendable () -> Void

    private struct State {
        var machine: ActivityTracker
        /// The number of the last timer. An earlier one that fires late is ignored.
        var generation: UInt64 = 0
        var cancel: (@Sendable () -> Void)?
    }

    private let state: Locked<State>
    private let feed: ChangeFeed<Bool>
    private let startTimer: Timer

    /// The indicator that sessions use by default.
    public static let shared = ActivityIndicator()

    /// Creates an indicator that is disabled.
    ///
    /// - Parameters:
    ///   - activationDelay: How long there must be activity before it is shown.
    ///   - completionDelay: How long there must be no activity before it is hidden.
    ///   - callbacks: Where ``onChange`` is called.
    public convenience init(
        activationDelay: Duration = .seconds(1), completionDelay: Duration = .milliseconds(170),
        callbacks: CallbackExecution = .serial
    ) {
        self.init(activationDelay, completionDelay, callbacks, timer: Self.sleeping)
    }

    init(
        _ activationDelay: Duration, _ completionDelay: Duration, _ callbacks: CallbackExecution,
        timer: @escaping Timer
    ) {
        let delays = ActivityDelays(
            activationMilliseconds: activationDelay.wholeMilliseconds,
            completionMilliseconds: completionDelay.wholeMilliseconds)
        state = Locked(State(machine: .init(delays: delays, isEnabled: false)))
        feed = ChangeFeed(false, callbacks)
        startTimer = timer
    }

    deinit {
        state.withLock { $0.cancel.take() }?()
        feed.finish()
    }

    private static let sleeping: Timer = { milliseconds, fired in
        let task = Task {
            do { try await Task.sleep(for: .milliseconds(milliseconds)) } catch { return }
            fired()
        }
        return { task.cancel() }
    }

    // MARK: Visibility

    /// Whether the indicator is enabled; `false` by default. Disabling it hides it at once.
    /// Requests are counted in any case.
    public var isEnabled: Bool {
        get { state.withLock { $0.machine.isEnabled } }
        set { change { $0.setEnabled(newValue) } }
    }

    /// Whether activity should be shown.
    public var isVisible: Bool { state.withLock { $0.machine.isVisible } }

    /// The number of active requests and other activities.
    public var count: Int { state.withLock { $0.machine.count } }

    /// Called for each change of ``isVisible`` with the new value.
    public var onChange: (@Sendable (Bool) -> Void)? {
        get { feed.handler }
        set { feed.handler = newValue }
    }

    /// Returns whether activity should be shown: the current value, then each change.
    ///
    /// The sequence keeps the indicator alive. At most 64 values are buffered; beyond that, the
    /// oldest are dropped.
    public func updates() -> AsyncStream<Bool> { feed.updates(of: self) }

    // MARK: Counting

    /// Marks the start of an activity.
    public func increment() { change { $0.begin() } }

    /// Marks the end of an activity. The count never drops below zero.
    public func decrement() { change { $0.end() } }

    private func change(_ body: @Sendable (inout ActivityTracker) -> ActivityActions) {
        let cancel = state.withLock { state -> (@Sendable () -> Void)? in
            let actions = body(&state.machine)
            // Within the lock, so that changes are published in order.
            if let isVisible = actions.visibilityChanged { feed.publish(isVisible) }
            switch actions.timer {
            case .none: return nil
            case .cancel:
                state.generation += 1
                return state.cancel.take()
            case .start(let milliseconds):
                state.generation += 1
                let generation = state.generation
                state.cancel = startTimer(milliseconds) { [weak self] in self?.fired(generation) }
                return nil
            }
        }
        cancel?()
    }

    private func fired(_ generation: UInt64) {
        let isCurrent = state.withLock { state in
            guard state.generation == generation else { return false }
            state.cancel = nil
            return true
        }
        // Any event in between has started its own timer, or is irrelevant to the state machine.
        if isCurrent { change { $0.timerFired() } }
    }
}
