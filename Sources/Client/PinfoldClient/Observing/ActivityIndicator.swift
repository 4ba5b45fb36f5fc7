import Activity
import Locking

/// Says when to show that requests are under way: what AFNetworking's
/// `AFNetworkActivityIndicatorManager` is.
///
///     ActivityIndicator.shared.onChange = { isVisible in spinner.isHidden = !isVisible }
///     ActivityIndicator.shared.isEnabled = true
///
/// It is slow to show and slow to hide: a request that is over soon shows nothing, and a short
/// pause between two hides nothing. The tasks of sessions that are not suspended are counted by
/// themselves (``SessionConfiguration/activityIndicator``), whatever requests they make; other work
/// by ``increment()`` and ``decrement()``.
///
/// With each change ``isVisible`` has the new value first; then ``onChange`` is called, and then
/// those who follow ``updates()`` are told.
public final class ActivityIndicator: Sendable {
    /// Calls a function after a while, unless what it returns is called before.
    typealias Timer =
        @Sendable (
            _ milliseconds: Int64, _ fired: @escaping @Sendable () -> Void
        ) -> @Sendable () -> Void

    private struct State {
        var machine: Activity.ActivityIndicator
        /// Of the last timer: an earlier one that fires late counts no more.
        var generation: UInt64 = 0
        var cancel: (@Sendable () -> Void)?
    }

    private let state: Locked<State>
    private let feed: ChangeFeed<Bool>
    private let startTimer: Timer

    /// The one that sessions count their requests in, if they are given no other one.
    public static let shared = ActivityIndicator()

    /// An indicator that is off.
    ///
    /// - Parameters:
    ///   - activationDelay: How long something must be under way before it is shown.
    ///   - completionDelay: How long nothing must be under way before it is hidden.
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

    // MARK: What it shows

    /// Whether it shows anything; off in the beginning. Switching it off hides what is shown at
    /// once. Requests are counted all the same.
    public var isEnabled: Bool {
        get { state.withLock { $0.machine.isEnabled } }
        set { change { $0.setEnabled(newValue) } }
    }

    /// Whether activity is to be shown.
    public var isVisible: Bool { state.withLock { $0.machine.isVisible } }

    /// Requests, and other work, under way.
    public var count: Int { state.withLock { $0.machine.count } }

    /// Called once for each change of ``isVisible``, with the new value.
    public var onChange: (@Sendable (Bool) -> Void)? {
        get { feed.handler }
        set { feed.handler = newValue }
    }

    /// Whether activity is to be shown: the value told last, then each change.
    ///
    /// The indicator is kept while somebody follows. Of more than 64 values that are not read the
    /// oldest are dropped.
    public func updates() -> AsyncStream<Bool> { feed.updates(of: self) }

    // MARK: What it counts

    /// Something begins.
    public func increment() { change { $0.begin() } }

    /// Something that began has ended. The count never goes below zero.
    public func decrement() { change { $0.end() } }

    private func change(
        _ body: @Sendable (inout Activity.ActivityIndicator) -> ActivityActions
    ) {
        let cancel = state.withLock { state -> (@Sendable () -> Void)? in
            let actions = body(&state.machine)
            // Under the lock, so that changes are told in their order.
            if let isVisible = actions.visibilityChanged { feed.tell(isVisible) }
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
        // What happens in between has begun a timer of its own, or is no event for the machine.
        if isCurrent { change { $0.timerFired() } }
    }
}
