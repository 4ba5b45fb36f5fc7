import Documents
import HTTPCore
import PinfoldEngine
import PinfoldMetrics

/// An exchange as somebody is shown it.
struct FlowView: Sendable {
    let flow: HeldFlow
    let target: FlowTarget
    private let names: FlowNames
    /// Whether who looks may see who asked, and what exactly.
    let isFull: Bool

    init(_ flow: HeldFlow, _ names: FlowNames, isFull: Bool) {
        self.flow = flow
        self.names = names
        self.isFull = isFull
        target = FlowTarget(flow)
    }

    var record: FlowRecord { flow.record }
    var counted: ExchangeRecord { record.counted }
    var id: String { String(hexadecimal: record.exchange, digits: 16) }
    var entry: String { names.hosts[counted.route.host] }
    var listener: String { names.listeners[counted.route.listener] }
    var reason: String? {
        counted.failure.flatMap { Reason.tokens.indices.contains($0) ? Reason.tokens[$0] : nil }
    }
    var client: String {
        String(
            Endpoint(address: record.clientAddress, port: record.clientPort).clientText)
    }

    /// A text that only who has proved to be an operator may see; `nil` if it is empty.
    func full(_ text: String) -> String? { isFull && !text.isEmpty ? text : nil }

    /// The server's address or socket.
    private var upstream: String? {
        guard let address = record.upstreamAddress else { return nil }
        if address == .unnamed { return "unix:" + flow.way }
        return "\(Endpoint(address: address, port: record.upstreamPort))"
    }

    private var original: String {
        record.originalAddress.map { "\(Endpoint(address: $0, port: record.originalPort))" } ?? ""
    }

    static let phases = ObjectShape<PhaseTimes>(
        "What it spent its time on, in microseconds; what did not happen is absent.",
        Phase.allCases.map { phase in
            .optionalNumber("\(phase.label)_us", "The phase `\(phase.label)`.") { times in
                let microseconds: UInt64? = times[phase]
                return microseconds.map { Int(clamping: $0) }
            }
        })

    static let shape = ObjectShape<FlowView>(
        "An exchange that has ended. Absent is what is not known, what did not happen, and what "
            + "only an operator with the token may see.",
        what + outcome + ways + who)

    private static var what: [ObjectShape<FlowView>.Member] {
        [
            .text("id", "Its number in replies and logs.") { $0.id },
            .number("sequence", "Its number among those that were held: later ones have more.") {
                Int(clamping: $0.flow.sequence)
            },
            .time("begin", "When the request's head was complete.") { $0.record.timeMilliseconds },
            .word("kind", ExchangeKind.allCases.map { "\($0.label)" }, "What it was.") {
                "\($0.counted.kind.label)"
            },
            .flag("isIntercepted", "Whether it was an intercepted CONNECT, or came through one.") {
                $0.record.isIntercepted
            },
            .text("method", "The method as it was sent; empty if it was not understood.") {
                $0.flow.methodText
            },
            .optionalText("scheme", "http or https; absent for tunnels.") { $0.target.scheme },
            .text("host", "What it was for, with the port if it was named.") { $0.target.host },
            .optionalText("path", "The path and query; *** in place of a query without token.") {
                $0.target.text(withQuery: $0.isFull)
            },
            .text("listener", "The listener that it came in by.") { $0.listener },
            .text("entry", "The host entry that applied.") { $0.entry },
        ]
    }

    private static var outcome: [ObjectShape<FlowView>.Member] {
        [
            .number("status", "The status that the client was sent; 0 for none.") {
                Int($0.counted.status)
            },
            .number("duration_us", "How long it took, in microseconds.") {
                Int(clamping: $0.counted.durationMicroseconds)
            },
            .object("phases", phases) { $0.record.phases },
            .number("requestBytes", "Bytes of content, or in a tunnel, from the client.") {
                Int(clamping: $0.counted.requestBytes)
            },
            .number("responseBytes", "Bytes of content, or in a tunnel, to the client.") {
                Int(clamping: $0.counted.responseBytes)
            },
            .word(
                "cache", CacheResult.allCases.map { "\($0.label)" },
                "What the cache had to do with it."
            ) { "\($0.counted.cache.label)" },
            .optionalText("forwarded", "Why the server was asked.") {
                $0.record.forwarded.map { "\($0.token)" }
            },
            .optionalText("notStored", "Why the response was not stored.") {
                $0.record.notStored.map { "\($0.token)" }
            },
            .optionalText("reason", "Why it was refused or failed.") { $0.reason },
            .optionalText(
                "pin",
                "What pins had to do with the server: passed, report_only, refused, unpinned."
            ) { $0.record.pins.map { "\($0.label)" } },
        ]
    }

    private static var ways: [ObjectShape<FlowView>.Member] {
        [
            .text("version", "The version that the request came in; empty if not understood.") {
                "\($0.record.protocolLabel)"
            },
            .optionalText("clientTLS", "The version of TLS with the client.") {
                $0.record.clientTLS.map { "\($0.label)" }
            },
            .optionalText("upstreamVersion", "The version with the server.") {
                $0.record.upstreamVersion.map { "\($0.text)" }
            },
            .optionalText("upstreamTLS", "The version of TLS with the server.") {
                $0.record.upstreamTLS.map { "\($0.label)" }
            },
            .optionalFlag("reused", "Whether the connection to the server was there before.") {
                $0.record.isReused
            },
            .optionalText("passed", "Why an intercepted host's tunnel was relayed.") {
                $0.record.interceptionPass.map { "\($0.label)" }
            },
            .optionalText("inspected", "The result of inspecting the tunnel.") {
                $0.record.inspection.map { "\($0.label)" }
            },
        ]
    }

    private static var who: [ObjectShape<FlowView>.Member] {
        [
            .optionalText("client", "The client's address and port.") { $0.full($0.client) },
            .optionalText("user", "Who asked.") { $0.full($0.flow.user) },
            .optionalText("clientSubject", "The subject of the client's certificate.") {
                $0.full($0.flow.subject)
            },
            .optionalText("rule", "The access rule that decided.") { $0.full($0.flow.rule) },
            .optionalText("reported", "Access rules that matched and only report.") {
                $0.full($0.flow.reported)
            },
            .optionalText("upstream", "The server's address, or the one tried last.") { view in
                view.upstream.flatMap { view.full($0) }
            },
            .optionalText("parent", "The parent proxy that it went through.") { view in
                view.record.upstreamAddress == .unnamed ? nil : view.full(view.flow.way)
            },
            .optionalText("inTunnel", "The CONNECT that it came through.") {
                $0.full($0.flow.tunnel)
            },
            .optionalText("changed", "What rules of its route changed in the content.") {
                $0.full($0.flow.steps)
            },
            .optionalText("original", "The address that its client connected to.") {
                $0.full($0.original)
            },
        ]
    }
}
