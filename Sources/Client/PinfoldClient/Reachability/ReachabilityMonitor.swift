import HTTPCore
import Locking
public import Reachability

/// Follows whether a host, an address or the Internet can be reached by the kernel's routes: what
/// AFNetworking's `AFNetworkReachabilityManager` is.
///
///     let monitor = ReachabilityMonitor(host: "api.example.com")
///     monitor.onChange = { print("now \($0)") }
///     try monitor.start()
///
/// The kernel tells of each change to links, addresses and routes, so that a lost route is seen at
/// once, and not by the next request that fails. Nothing is sent to the host: a route says that
/// packets would leave this machine, not that anybody answers.
///
/// With each change ``status`` has the new value first; then ``onChange`` is called, and then those
/// who follow ``updates()`` are told.
public final class ReachabilityMonitor: Sendable {
    private struct State {
        var status = NetworkStatus.unknown
        /// Of the last start: what an earlier one reports counts no more.
        var generation: UInt64 = 0
        var watch: (runtime: ClientRuntime, number: UInt64)?
    }

    private let target: ReachabilityTarget
    private let runtime: ClientRuntime?
    private let makeSource: @Sendable () throws(NetlinkError) -> RouteSource
    private let state = Locked(State())
    private let feed: ChangeFeed<NetworkStatus>

    /// Follows whether the Internet can be reached; one for the whole process, to be started by
    /// whoever wants to know.
    public static let shared = ReachabilityMonitor()

    /// Whether the Internet can be reached: some address that is not of this network.
    ///
    /// - Parameters:
    ///   - runtime: The thread that watches; nil: ``ClientRuntime/shared()``.
    ///   - callbacks: Where ``onChange`` is called.
    public convenience init(
        runtime: ClientRuntime? = nil, callbacks: CallbackExecution = .serial
    ) {
        self.init(.internet, runtime, callbacks)
    }

    /// Whether one of a host's addresses can be reached.
    ///
    /// A name without any address is not reachable. It is looked up anew with each change of the
    /// network, and, as long as that fails, after some seconds.
    ///
    /// - Parameters:
    ///   - host: A name, or an address.
    ///   - runtime: As for ``init(runtime:callbacks:)``, as is the last.
    public convenience init(
        host: String, runtime: ClientRuntime? = nil, callbacks: CallbackExecution = .serial
    ) {
        self.init(.host(host), runtime, callbacks)
    }

    /// Whether an address can be reached.
    ///
    /// - Parameters:
    ///   - address: IPv4, or IPv6 without brackets.
    ///   - runtime: As for ``init(runtime:callbacks:)``, as is the last.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` for any other text.
    public convenience init(
        address: String, runtime: ClientRuntime? = nil, callbacks: CallbackExecution = .serial
    ) throws(ClientError) {
        guard let read = IPAddress(address) else {
            throw ClientError(
                .invalidRequest, "expected an IPv4 or IPv6 address without brackets",
                url: address)
        }
        self.init(.address(read), runtime, callbacks)
    }

    init(
        _ target: ReachabilityTarget, _ runtime: ClientRuntime?, _ callbacks: CallbackExecution,
        source: @escaping @Sendable () throws(NetlinkError) -> RouteSource = {
            () throws(NetlinkError) in try RouteSource.kernel()
        }
    ) {
        self.target = target
        self.runtime = runtime
        makeSource = source
        feed = ChangeFeed(.unknown, callbacks)
    }

    deinit {
        stop()
        feed.finish()
    }

    // MARK: The status

    /// What was found last; unknown before the first report.
    public var status: NetworkStatus { state.withLock { $0.status } }

    /// Whether it can be reached, by whatever interface.
    public var isReachable: Bool { status.isReachable }

    /// Whether it has been started, and not stopped since.
    public var isMonitoring: Bool { state.withLock { $0.watch != nil } }

    /// Called once for the first report of each start, and once for each change.
    public var onChange: (@Sendable (NetworkStatus) -> Void)? {
        get { feed.handler }
        set { feed.handler = newValue }
    }

    /// The status told of last, then each report as ``onChange`` has it, whenever it is started.
    ///
    /// The monitor is kept while somebody follows. The sequence ends with the runtime. Of more than
    /// 64 values that are not read the oldest are dropped.
    public func updates() -> AsyncStream<NetworkStatus> { feed.updates(of: self) }

    // MARK: Start and stop

    /// Begins to watch; where it does already, that ends first. The first report comes later, not
    /// in this call.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/outOfResources`` where the system gives
    ///   no socket, or with ``ClientError/Reason/sessionInvalidated`` where the runtime is closed.
    public func start() throws(ClientError) {
        let runtime = if let runtime { runtime } else { try ClientRuntime.shared() }
        let source: RouteSource
        do throws(NetlinkError) { source = try makeSource() } catch {
            throw ClientError(
                .outOfResources, "routes cannot be watched: \(error)", underlying: error)
        }
        let number = runtime.nextNumber()
        let (generation, previous) = state.withLock { state in
            state.generation += 1
            let previous = state.watch
            state.watch = (runtime, number)
            return (state.generation, previous)
        }
        Self.remove(previous)
        // Held by the watch, wherever that is: its end is the watch's end.
        let tie = Tie { [weak self] in self?.watchEnded(generation) }
        let report: @Sendable (NetworkStatus) -> Void = { [weak self, tie] status in
            withExtendedLifetime(tie) { self?.report(status, generation) }
        }
        let isTaken = runtime.post(
            .work { [target, resolver = runtime.resolver] loop in
                let watch = RouteWatch(
                    target, source, number: number, on: loop, resolver: resolver, report: report)
                try? watch.begin()
            })
        guard isTaken else { throw ClientError.sessionInvalidated() }
    }

    /// Ends watching; ``status`` stays as it is. Nothing more is reported, unless a report is being
    /// made at this moment.
    public func stop() {
        let previous = state.withLock { state in
            state.generation += 1
            return state.watch.take()
        }
        Self.remove(previous)
    }

    private static func remove(_ watch: (runtime: ClientRuntime, number: UInt64)?) {
        guard let watch else { return }
        watch.runtime.post(.work { [number = watch.number] in $0.removeWatch(number) })
    }

    private func report(_ status: NetworkStatus, _ generation: UInt64) {
        let isCurrent = state.withLock { state in
            guard state.generation == generation else { return false }
            state.status = status
            return true
        }
        guard isCurrent else { return }
        feed.tell(status) { [weak self] in self?.isCurrent(generation) ?? false }
    }

    private func isCurrent(_ generation: UInt64) -> Bool {
        state.withLock { $0.generation == generation }
    }

    /// The watch is gone without having been stopped: with its runtime.
    private func watchEnded(_ generation: UInt64) {
        let isOver = state.withLock { state in
            guard state.generation == generation else { return false }
            state.watch = nil
            return true
        }
        if isOver { feed.finish() }
    }
}
