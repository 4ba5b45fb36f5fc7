import Clocks
import HTTPCore
import PinfoldEngine
import PinfoldMetrics

/// Has something done on another thread; returns `false` if too much is waiting.
typealias AdminWork = @Sendable (@escaping @Sendable () -> Void) -> Bool

extension AdminResource {
    /// The resources that show exchanges.
    /// - Parameter flows: `nil` if none are held; the resources then say so.
    static func ofFlows(
        _ flows: FlowAdministration?, work: @escaping AdminWork
    ) -> [AdminResource] {
        [list(flows, work), one(flows, work)]
    }

    /// `GET /api/v1/flows`
    private static func list(
        _ flows: FlowAdministration?, _ work: @escaping AdminWork
    ) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/flows", caller: .operator, name: "flows",
            summary: "the latest exchanges, the newest first",
            responses: [
                Response(status: 200, description: "A page.", schema: FlowPage.shape.schema),
                Response(
                    status: 503, description: "Too many others are waiting.",
                    schema: AdminError.shape.schema),
            ],
            parameters: FlowFilter.parameters,
            answer: { request in
                guard let flows else { return .noFlows }
                let isFull = request.access.isProven(request.authorization)
                let filter: FlowFilter
                do throws(AdminError) {
                    filter = try FlowFilter(AdminQuery(target: request.target), isFull: isFull)
                } catch {
                    return .now(error.response)
                }
                flows.watch()
                return .worked(by: work) {
                    .json(FlowPage(flows, filter, isFull: isFull), as: FlowPage.shape)
                }
            })
    }

    /// `GET /api/v1/flows/{id}`
    private static func one(
        _ flows: FlowAdministration?, _ work: @escaping AdminWork
    ) -> AdminResource {
        let path = "/api/v1/flows/{id}"
        return AdminResource(
            method: .get, path: path, caller: .operator, name: "flow",
            summary: "one of the latest exchanges, with its heads",
            responses: [
                Response(
                    status: 200, description: "The exchange.", schema: FlowDetail.shape.schema),
                Response(
                    status: 404, description: "It is not held (any more).",
                    schema: AdminError.shape.schema),
            ],
            parameters: [
                Parameter(
                    name: "id", description: "Its number in replies and logs: 16 digits.",
                    isRequired: true, isInPath: true)
            ],
            answer: { request in
                guard let flows else { return .noFlows }
                let isFull = request.access.isProven(request.authorization)
                let id = String(request.path.dropFirst(path.count - 4)).lowercasedASCII
                flows.watch()
                return .worked(by: work) {
                    guard let flow = flows.ring.snapshot.flows.first(where: { $0.hasID(id) }) else {
                        return AdminError(
                            404, "not-held", "Not held",
                            "no exchange of this id is held; the latest \(FlowRing.capacity) are, "
                                + "and before somebody looked only those that failed"
                        ).response
                    }
                    let view = FlowView(flow, flows.names, isFull: isFull)
                    return .json(FlowDetail(view: view), as: FlowDetail.shape)
                }
            })
    }
}

extension HeldFlow {
    fileprivate func hasID(_ id: String) -> Bool {
        String(hexadecimal: record.exchange, digits: 16) == id
    }
}

extension AdminAnswer {
    static var noFlows: AdminAnswer {
        .problem(404, "no-flows", "No exchanges", "this gateway holds no exchanges")
    }

    /// What is made on another thread: a worker's clients do not wait for it.
    static func worked(
        by work: @escaping AdminWork, _ make: @escaping @Sendable () -> AdminResponse
    ) -> AdminAnswer {
        .later { reply in
            if work({ reply(make()) }) { return }
            reply(.busy)
        }
    }
}

extension AdminResponse {
    /// Too much is waiting.
    static var busy: AdminResponse {
        AdminError(
            503, "busy", "Busy", "too many other requests are waiting",
            fields: [AdminResponse.Field("Retry-After", "1")]
        ).response
    }
}

/// Some of the exchanges that are held.
struct FlowPage: Sendable {
    var flows: [FlowView]
    var next: UInt64?
    var newest: UInt64
    var held: Int
    var gaveWay: UInt64
    var leftOut: UInt64
    var isFull: Bool

    init(_ source: FlowAdministration, _ filter: FlowFilter, isFull: Bool) {
        let snapshot = source.ring.snapshot
        let names = source.names
        let wanted = snapshot.flows.lazy.map { FlowView($0, names, isFull: isFull) }
            .filter { filter.accepts($0) }
        var shown = Array(wanted.prefix(filter.limit + 1))
        if shown.count > filter.limit {
            shown.removeLast()
            next = shown.last?.flow.sequence
        }
        flows = shown
        newest = snapshot.newest
        held = snapshot.flows.count
        gaveWay = snapshot.gaveWay
        leftOut = source.leftOut
        self.isFull = isFull
    }

    static let shape = ObjectShape<FlowPage>(
        "Some of the exchanges that are held.",
        [
            .access { $0.isFull },
            .list("flows", FlowView.shape, "Exchanges, the newest first.") { $0.flows },
            .optionalText("next", "The cursor of the next page; absent at the end.") { page in
                page.next.map { "\($0)" }
            },
            .number("newest", "The sequence of the newest of all; 0 if there was none.") {
                Int(clamping: $0.newest)
            },
            .number("held", "How many are held.") { $0.held },
            .number("capacity", "How many can be held.") { _ in FlowRing.capacity },
            .number("gaveWay", "How many are no longer held.") { Int(clamping: $0.gaveWay) },
            .number(
                "leftOut",
                "How many ended while somebody looked, and were not held: there were too many."
            ) { Int(clamping: $0.leftOut) },
        ])
}

extension ObjectShape.Member {
    /// What who asks may see.
    static func access(_ isFull: @escaping @Sendable (Value) -> Bool) -> Self {
        .word(
            "access", ["full", "masked"],
            "masked: without token, certificate or Unix socket, so that who asked, what exactly "
                + "and the heads are left out."
        ) { isFull($0) ? "full" : "masked" }
    }
}

/// One exchange with all that is held of it.
struct FlowDetail: Sendable {
    var view: FlowView

    private var entry: ReasonEntry? {
        view.counted.failure.flatMap { index in
            Reason.allCases.indices.contains(index) ? Reason.allCases[index].entry : nil
        }
    }

    private var request: MaskedHead? {
        view.isFull && !view.flow.head.isEmpty
            ? MaskedHead(view.flow.head, isCut: view.flow.isHeadCut) : nil
    }

    private var response: MaskedHead? {
        view.isFull && !view.flow.responseHead.isEmpty
            ? MaskedHead(view.flow.responseHead, isCut: view.flow.isResponseHeadCut) : nil
    }

    private struct Explanation: Sendable {
        var entry: ReasonEntry
        var detail: String?

        static let shape = ObjectShape<Explanation>(
            "Why it was refused or failed.",
            [
                .text("token", "The reason.") { $0.entry.token },
                .text("meaning", "What it means.") { $0.entry.meaning },
                .text("remedy", "What to do about it.") { $0.entry.remedy },
                .optionalText("detail", "What it was here.") { $0.detail },
            ])
    }

    private static let field = ObjectShape<MaskedHead.Field>(
        "A field.",
        [
            .text("name", "Its name.") { $0.name },
            .text("value", "Its value; *** for a secret.") { $0.value },
            .flag("isMasked", "Whether it is a secret.") { $0.isMasked },
        ])

    static let shape = ObjectShape<FlowDetail>(
        "One exchange with all that is held of it.",
        [
            .access { $0.view.isFull },
            .object("flow", FlowView.shape) { $0.view },
            .optionalObject("explanation", Explanation.shape) { detail in
                detail.entry.map {
                    Explanation(entry: $0, detail: detail.view.full(detail.view.flow.detail))
                }
            },
            .optionalObject("serverChain", ChainView.shape) { detail in
                detail.view.isFull ? detail.view.flow.chain.map { ChainView($0) } : nil
            },
            .optionalText("requestLine", "The request line.") { $0.request?.start },
            .optionalList("requestFields", field, "The request's fields.") {
                $0.request?.fields ?? []
            },
            .flag("requestIsCut", "Whether the head had more fields than are held.") {
                $0.view.flow.isHeadCut
            },
            .optionalText("statusLine", "The status line; HTTP/2 has none.") {
                $0.response?.start
            },
            .optionalList("responseFields", field, "The response's fields.") {
                $0.response?.fields ?? []
            },
            .flag("responseIsCut", "Whether the head had more fields than are held.") {
                $0.view.flow.isResponseHeadCut
            },
        ])
}
