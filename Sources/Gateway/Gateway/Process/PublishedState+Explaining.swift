import HTTPCore
import PinfoldEngine

extension PublishedState {
    /// What explanations are made of.
    func explanations(
        work: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool
    ) -> ExplanationSource {
        ExplanationSource(
            policy: { [self] in policy.withLock { $0 } },
            resolve: { [self] name, completion in
                guard let shared = running.shared else {
                    return completion(.failed(.cancelled))
                }
                shared.resolver.resolveWhole(name, completion)
            },
            moment: { [self] in moment(of: $0, under: $1) }, cache: cache.withLock { $0 },
            work: work)
    }

    /// What depends on the moment of where a URL leads.
    private func moment(
        of route: RouteExplanation, under policy: PolicySnapshot
    ) -> RunningExplanation.Moment {
        let reload = reload.withLock { $0 }
        var moment = RunningExplanation.Moment()
        moment.loaded = Int64(clamping: reload.loadedMilliseconds)
        moment.isInForce = (running.shared?.generationInForce ?? 0) >= policy.generation
        let names = [route.host, HostText.text(route.host, port: route.port)]
        for entry in reload.hosts where entry.label == route.label {
            moment.reachability = entry.known.filter { names.contains($0.server) }
                .map { ReachabilityReport.Server(name: $0.server, state: $0.state) }
        }
        let listeners = Set(route.ways.compactMap(\.asking.listener))
        moment.servers = servers(policy.allServerSets.filter { listeners.contains($0.listener) })
        let ways = Set(
            ((route.proxyWays ?? []) + route.judgements.flatMap { $0.judgement.proxyWays ?? [] })
                .map(\.name))
        moment.parents = policy.parents.compactMap { parent in
            guard let standing = parent.standing, ways.contains(standing.name) else { return nil }
            return RunningExplanation.Moment.Parent(
                name: standing.name, isDown: standing.isDown)
        }
        return moment
    }
}
