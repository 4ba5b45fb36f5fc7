import PinfoldEngine

extension GatewayProcess {
    /// Makes what looks at the gateway, and the resources that show it.
    /// - Returns: what is recorded of exchanges.
    func observe(
        _ ring: FlowRing, _ labels: RouteLabels, for source: inout AdminSource
    ) -> Recordings {
        let (published, mailboxes) = (published, mailboxes)
        let flows = FlowAdministration(
            ring: ring, labels: labels,
            leftOut: {
                published.running.workers.reduce(into: 0) { $0 &+= $1.value(.flowsLeftOut) }
            },
            watchWorkers: { for mailbox in mailboxes { mailbox.post(.watchFlows) } })
        let recordings = Recordings(labels: labels, workers: mailboxes.count) { round in
            for mailbox in mailboxes { mailbox.post(.followRecordings(round)) }
        }
        let observer = GatewayObserver(
            flows, recordings,
            GatewayObserver.Source(
                reading: { published.reading() }, hosts: { published.hostTraffic() },
                pinsets: { published.pinsetMetrics() },
                activity: { published.activityReport() }, load: { published.load($0) },
                generation: { published.running.shared?.generationInForce ?? 1 },
                ask: { round in
                    for mailbox in mailboxes { mailbox.post(.reportTransfers(round)) }
                }, workers: mailboxes.count))
        published.observer.withLock { $0 = observer }
        source.configuration = ConfigurationSource(
            report: { [look] in published.configuration(look, isFull: $0) },
            work: { [look] in look.run($0) })
        source.explanations = published.explanations { observer.write($0) }
        source.flows = flows
        source.reports = { observer.write($0) }
        source.overview = OverviewSource(
            overview: { published.overview(observer.history) },
            hosts: { published.hosts(observer.history) },
            pins: { published.pins(observer.history, flows, isFull: $0) },
            reachability: { published.reachability() }, observer: observer)
        return recordings
    }
}
