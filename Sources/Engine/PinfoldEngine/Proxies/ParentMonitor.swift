import EventLoop

/// Has parents asked whether they answer, with or without traffic: every environment looks once in
/// a while, and one of them asks (``ParentStanding/takeProbe(at:)``).
final class ParentMonitor: EventHandler {
    /// How often it looks, in milliseconds.
    static let intervalMilliseconds: Int64 = 250

    let environment: Environment
    private var probes: [ObjectIdentifier: ParentProbe] = [:]

    init(environment: Environment) { self.environment = environment }

    /// Starts, unless there are no descriptors: then parents come up by traffic alone.
    func start() {
        guard (try? environment.loop.add(self)) != nil else { return }
        look()
    }

    /// Ends.
    func close() {
        for probe in probes.values { probe.cancel() }
        probes = [:]
        environment.loop.remove(self)
    }

    override func deadlineReached() { look() }

    private func look() {
        environment.loop.setDeadline(self, after: Self.intervalMilliseconds)
        guard !environment.isDraining else { return }
        let policy = environment.policy
        for proxy in policy.parents {
            guard let standing = proxy.standing,
                standing.takeProbe(at: environment.loop.monotonicNow)
            else { continue }
            ask(proxy, standing, policy)
        }
    }

    private func ask(_ proxy: UpstreamProxy, _ standing: ParentStanding, _ policy: PolicySnapshot) {
        var probe: ParentProbe?
        probe = ParentProbe(environment: environment, proxy: proxy, policy: policy) {
            [unowned self] hasAnswered in
            if let probe { probes[ObjectIdentifier(probe)] = nil }
            probe = nil
            if standing.probed(hasAnswered, at: environment.loop.monotonicNow) {
                environment.logChange(of: standing)
            }
        }
        guard let probe else { return }
        probes[ObjectIdentifier(probe)] = probe
        probe.start()
    }
}

extension ParentMonitor: EnvironmentPart {
    func closeWithEnvironment() { close() }
}
