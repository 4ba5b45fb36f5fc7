import HTTPCore
import Locking

/// Monitors whether a host, an address or the Internet is reachable according to the kernel's
/// routes. This corresponds to AFNetworking's `AFNetworkReachabilityManager`.
///
///     let monitor = ReachabilityMonitor(host: "api.example.com")
///     monitor.onChange = { print("now \($0)") }
///     try monitor.start()
///
/// The kernel reports each change to links, addresses and routes, so a lost route is noticed at
/// once, and not only when the next request fails. Nothing is sent to the host: a route means that
/// packets would leave this machine, not that anyone answers.
///
/// On each change, ``status`` has the new value first, then ``onChange`` is called, and then the
/// sequences from ``updates()`` receive the value.
public final class ReachabilityMonitor: Sendable {
    private struct State {
        var status = NetworkStatus.unknown
        /// The number of the last start. Reports of earlier ones are ignored.
        var generation: UInt64 = 0
        var watch: (runtime: ClientRuntime, number: UInt64)?
    }

    private let target: ReachabilityTarget
    private let runtime: ClientRuntime?
    private let makeSource: @Sendable () throws(NetlinkError) -> RouteSource
    private let state = Locked(State())
    private let feed: ChangeFeed<NetworkStatus>

    /// The monitor of Internet reachability for the whole process. It has to be started.
    public static let shared = ReachabilityMonitor()

    /// Creates a monitor of whether the Internet is reachable, that is, addresses outside this
    /// network.
    ///
    /// - Parameters:
    ///   - runtime: The runtime whose thread watches, or `nil` for ``ClientRuntime/shared()``.
    ///   - callbacks: Where ``onChange`` is called.
    public convenience init(
        runtime: ClientRuntime? = nil, callbacks: CallbackExecution = .serial
    ) {
        self.init(.internet, runtime, callbacks)
    }

    /// Creates a monitor of whether one of a host's addresses is reachable.
    ///
    /// A name without an address is not reachable. The name is resolved again after each change of
    /// the network and, if that fails, again after some seconds.
    ///
    /// - Parameters:
    ///   - host: A host name or an IP address.
    ///   - runtime: See ``init(runtime:callbacks:)``, as for the last parameter.
    public convenience init(
        host: String, runtime: ClientRuntime? = nil, callbacks: CallbackExecution = .serial
    ) {
        self.init(.host(host), runtime, callbacks)
    }

    /// Creates a monitor of whether an address is reachable.
    ///
    /// - Parameters:
    ///   - address: An IPv4 address, or an IPv6 address without brackets.
    ///   - runtime: See ``init(runtime:callbacks:)``, as for the last parameter.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` if the text is not an
    ///   address.
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

    // MARK: Status

    /// The current status; unknown before the first report.
    public var status: NetworkStatus { state.withLock { $0.status } }

    /// Whether the target is reachable through any interface.
    public var isReachable: Bool { status.isReachable }

    /// Whether the monitor has been started and not stopped.
    public var isMonitoring: Bool { state.withLock { $0.watch != nil } }

    /// Called for the first report after each start, and for each change.
    public var onChange: (@Sendable (NetworkStatus) -> Void)? {
        get { feed.handler }
        set { feed.handler = newValue }
    }

    /// Returns the current status, then each report as passed to ``onChange``, across starts and
    /// stops.
    ///
    /// The sequence keeps the monitor alive, and ends with the runtime. At most 64 values are
    /// buffered; beyond that, the oldest are dropped.
    public func updates() -> AsyncStream<NetworkStatus> { feed.updates(of: self) }

    // MARK: Start and stop

    /// Starts monitoring, or restarts it. The first report arrives after this method has returned.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/outOfResources`` if the system cannot
    ///   provide a socket, or with ``ClientError/Reason/sessionInvalidated`` if the runtime was
    ///   closed.
    public func start() throws(ClientError) {
        let runtime = if let runtime { runtime } else { try ClientRuntime.shared() }
        let source: RouteSource
        do throws(NetlinkError) { source = try makeSource() } catch {
            throw ClientError(
                .outOfResources, "routes cannot be monitored: \(error)", underlying: error)
        }
        let number = runtime.nextNumber()
        let (generation, previous) = state.withLock { state in
            state.generation += 1
            let previous = state.watch
            state.watch = (runtime, number)
            return (state.generation, previous)
        }
        Self.remove(previous)
        // Held by the watch, wherever that is: when it is released, the watch has ended.
        let releaseAction = ReleaseAction { [weak self] in self?.watchEnded(generation) }
        let report: @Sendable (NetworkStatus) -> Void = { [weak self, releaseAction] status in
            withExtendedLifetime(releaseAction) { self?.report(status, generation) }
        }
        let isTaken = runtime.post(
            .work { [target, resolver = runtime.resolver] loop in
                let watch = RouteWatch(
                    target, source, number: number, on: loop, resolver: resolver, report: report)
                try? watch.begin()
            })
        guard isTaken else { throw ClientError.sessionInvalidated() }
    }

    /// Stops monitoring. ``status`` keeps its value. Nothing more is reported, except for a report
    /// already in progress.
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
        feed.publish(status) { [weak self] in self?.isCurrent(generation) ?? false }
    }

    private func isCurrent(_ generation: UInt64) -> Bool {
        state.withLock { $0.generation == generation }
    }

    /// The watch has ended without having been stopped, because its runtime has ended.
    private func watchEnded(_ generation: UInt64) {
        let isOver = state.withLock { state in
            guard state.generation == generation else { return false }
            state.watch = nil
            return true
        }
        if isOver { feed.finish() }
    }
}
