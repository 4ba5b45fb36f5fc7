import Documents
import HTTPCore
import PinfoldEngine

/// What the resources of the overview are made of; called on the thread of their work.
struct OverviewSource: Sendable {
    var overview: @Sendable () -> OverviewReport
    var hosts: @Sendable () -> HostsReport
    /// Whether who asks may see who asked.
    var pins: @Sendable (_ isFull: Bool) -> PinsReport
    var reachability: @Sendable () -> ReachabilityReport
    var observer: GatewayObserver
}

extension AdminResource {
    /// The resources that show the gateway at a glance, and events.
    /// - Parameter source: `nil` if nothing is observed; the resources then say so.
    static func ofOverview(
        _ source: OverviewSource?, _ flows: FlowAdministration?, work: @escaping AdminWork
    ) -> [AdminResource] {
        [
            report(
                "overview", "the gateway at a glance, with its last five minutes",
                OverviewReport.shape, source, work
            ) { source, _ in source.overview() },
            report(
                "hosts", "what host entries do lately, those that deserve a look first",
                HostsReport.shape, source, work
            ) { source, _ in source.hosts() },
            report(
                "pins", "what pins match, what passes without any, and what expires when",
                PinsReport.shape, source, work
            ) { source, isFull in
                flows?.watch()
                return source.pins(isFull)
            },
            report(
                "reachability", "whether servers can be reached, and since when",
                ReachabilityReport.shape, source, work
            ) { source, _ in source.reachability() },
            transfers(source, flows, work), events(source, flows),
        ]
    }

    private static func report<Report>(
        _ name: String, _ summary: String, _ shape: ObjectShape<Report>,
        _ source: OverviewSource?, _ work: @escaping AdminWork,
        _ make: @escaping @Sendable (OverviewSource, _ isFull: Bool) -> Report
    ) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/\(name)", caller: .operator, name: name,
            summary: summary,
            responses: [
                Response(status: 200, description: "A report.", schema: shape.schema),
                Response(
                    status: 503, description: "Too many others are waiting.",
                    schema: AdminError.shape.schema),
            ],
            answer: { request in
                guard let source else { return .noFlows }
                if let refusal = refusal(ofQueryOf: request) { return refusal }
                let isFull = request.access.isProven(request.authorization)
                return .worked(by: work) { .json(make(source, isFull), as: shape) }
            })
    }

    /// These resources have no parameters.
    static func refusal(ofQueryOf request: AdminRequest) -> AdminAnswer? {
        AdminQuery(target: request.target).unknown(besides: []).map {
            invalid("unknown parameter \($0); expected none")
        }
    }

    /// `GET /api/v1/transfers`
    private static func transfers(
        _ source: OverviewSource?, _ flows: FlowAdministration?, _ work: @escaping AdminWork
    ) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/transfers", caller: .operator, name: "transfers",
            summary: "what is under way, with its bytes",
            responses: [
                Response(
                    status: 200, description: "A report.", schema: TransferPage.shape.schema),
                Response(
                    status: 503, description: "Too many others are waiting.",
                    schema: AdminError.shape.schema),
            ],
            answer: { request in
                guard let source, let flows else { return .noFlows }
                if let refusal = refusal(ofQueryOf: request) { return refusal }
                let isFull = request.access.isProven(request.authorization)
                return .later { reply in
                    let isTaken = source.observer.transfers { report in
                        // Not on the worker that was the last to answer.
                        let isTaken = work {
                            let page = TransferPage(report, flows.names, isFull: isFull)
                            reply(.json(page, as: TransferPage.shape))
                        }
                        if !isTaken { reply(.busy) }
                    }
                    if !isTaken { reply(.busy) }
                }
            })
    }

    /// `GET /api/v1/events`
    private static func events(
        _ source: OverviewSource?, _ flows: FlowAdministration?
    ) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/events", caller: .operator, name: "events",
            summary: "exchanges and the state as server-sent events, until the client leaves",
            responses: [
                Response(
                    status: 200,
                    description: "Events: hello, flow, dropped, overview, activity, transfers, "
                        + "configuration, bye. Their data is JSON, of the shapes of the other "
                        + "resources.",
                    schema: .dictionary(["type": .string("string")]), type: "text/event-stream"),
                Response(
                    status: 503, description: "There are too many readers, or it shuts down.",
                    schema: AdminError.shape.schema),
            ],
            answer: { request in
                guard let source else { return .noFlows }
                if let refusal = refusal(ofQueryOf: request) { return refusal }
                let head = AdminResponse(
                    status: 200, contentType: "text/event-stream",
                    fields: [AdminSite.noStore, AdminResponse.Field("X-Accel-Buffering", "no")],
                    body: [])
                guard request.method != .head else { return .now(head) }
                let isFull = request.access.isProven(request.authorization)
                let last = request.lastEventID.flatMap { EventID($0) }
                switch source.observer.read(isFull: isFull, after: last) {
                case .reads(let pieces): return .stream(head, pieces)
                case .tooMany:
                    return .problem(
                        503, "too-many-readers", "Too many readers",
                        "\(EventReaders.limit) read events already",
                        [AdminResponse.Field("Retry-After", "2")])
                case .ending:
                    return .problem(
                        503, "shutting-down", "Shutting down",
                        "the gateway shuts down, or another process serves",
                        [AdminResponse.Field("Retry-After", "1")])
                }
            })
    }
}
