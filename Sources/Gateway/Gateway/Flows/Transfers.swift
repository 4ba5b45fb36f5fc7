import Documents
import HTTPCore
import Locking
import PinfoldEngine

/// An exchange that is under way.
struct Transfer: Sendable {
    var flow: HeldFlow
    /// The name of its state.
    var state: String
    /// The bytes of the response's content that the server has announced.
    var length: UInt64?
    var worker: Int

    var isTunnel: Bool { state == "tunnelling" }
    var bytes: UInt64 { flow.record.counted.requestBytes &+ flow.record.counted.responseBytes }
}

/// One question to all workers for what is under way, and their answers.
package final class TransferRound: Sendable {
    /// The most exchanges in an answer.
    static let limit = 200

    /// What is under way on all workers.
    struct Report: Sendable {
        /// Of each worker the ones with the most bytes, in no particular order.
        var transfers: [Transfer] = []
        /// How many are under way in all, and how many of these are tunnels.
        var count = 0
        var tunnels = 0
        /// When it was asked for, in milliseconds since 1970.
        var time: Int64
    }

    private struct State {
        var report: Report
        var pending: Int
        var completion: (@Sendable (Report) -> Void)?
    }

    private let state: Locked<State>

    /// - Parameter completion: called once, when all workers have answered or ``giveUp()`` is
    ///   called, on the thread of that.
    init(workers: Int, time: Int64, completion: @escaping @Sendable (Report) -> Void) {
        state = Locked(
            State(report: Report(time: time), pending: workers, completion: completion))
    }

    /// A worker answers.
    /// - Parameters:
    ///   - count: how many are under way there.
    ///   - tunnels: how many of them are tunnels.
    func answer(_ transfers: [Transfer], count: Int, tunnels: Int) {
        complete { state in
            state.report.count += count
            state.report.tunnels += tunnels
            state.report.transfers += transfers
            state.pending -= 1
            return state.pending <= 0
        }
    }

    /// Takes what has been answered until now: a worker may hang.
    func giveUp() { complete { _ in true } }

    private func complete(_ change: (inout State) -> Bool) {
        let due = state.withLock { state -> (Report, @Sendable (Report) -> Void)? in
            guard change(&state), let completion = state.completion.take() else { return nil }
            return (state.report, completion)
        }
        if let (report, completion) = due { completion(report) }
    }
}

extension Worker {
    /// Reports what is under way here.
    func reportTransfers(to round: TransferRound) {
        var exchanges: [(exchange: Exchange, bytes: UInt64)] = []
        func add(_ exchange: Exchange?) {
            guard let exchange, exchange.intake.ingress?.isCounted ?? false else { return }
            let passed = exchange.passedBytes
            exchanges.append((exchange, passed.fromClient &+ passed.toClient))
        }
        for handler in loop.handlers {
            if let client = handler as? ClientConnection {
                add(client.exchange)
            } else if let client = handler as? HTTP2ClientConnection {
                for stream in client.streams { add(stream?.exchange) }
            } else if let client = handler as? TunnelClientConnection {
                add(client.exchange)
            }
        }
        // The connections of most tunnels belong to their relays alone.
        let known = Set(exchanges.map { ObjectIdentifier($0.exchange) })
        let relayed = environment.relayedExchanges
        for exchange in relayed where !known.contains(ObjectIdentifier(exchange)) {
            add(exchange)
        }
        if exchanges.count > TransferRound.limit { exchanges.sort { $0.bytes > $1.bytes } }
        let transfers = exchanges.prefix(TransferRound.limit).compactMap { one -> Transfer? in
            guard let progress = one.exchange.progress,
                let flow = flow(of: one.exchange, progress.counted, progress.phases)
            else { return nil }
            return Transfer(
                flow: flow, state: progress.state, length: progress.length, worker: index)
        }
        round.answer(transfers, count: exchanges.count, tunnels: relayed.count)
    }
}

/// What is under way as somebody is shown it.
struct TransferPage: Sendable {
    private let report: TransferRound.Report
    private let names: FlowNames
    private let isFull: Bool

    init(_ report: TransferRound.Report, _ names: FlowNames, isFull: Bool) {
        var report = report
        report.transfers.sort { $0.bytes > $1.bytes }
        report.transfers = Array(report.transfers.prefix(TransferRound.limit))
        self.report = report
        self.names = names
        self.isFull = isFull
    }

    private struct Shown: Sendable {
        var transfer: Transfer
        var view: FlowView
    }

    private static let transfer = ObjectShape<Shown>(
        "A request that is under way.",
        [
            .text("id", "Its number in replies and logs.") { $0.view.id },
            .time("begin", "When the request's head was complete.") {
                $0.view.record.timeMilliseconds
            },
            .text("method", "The method as it was sent.") { $0.view.flow.methodText },
            .optionalText("scheme", "http or https.") { $0.view.target.scheme },
            .text("host", "What it is for, with the port if it was named.") {
                $0.view.target.host
            },
            .optionalText("path", "The path and query; *** in place of a query without token.") {
                $0.view.target.text(withQuery: $0.view.isFull)
            },
            .text("entry", "The host entry that applies.") { $0.view.entry },
            .text("state", "What it is doing: its state in the log.") { $0.transfer.state },
            .number("status", "The status that the client was sent; 0 for none yet.") {
                Int($0.view.counted.status)
            },
            .object("phases", FlowView.phases) { $0.view.record.phases },
            .number("requestBytes", "Bytes of content from the client.") {
                Int(clamping: $0.view.counted.requestBytes)
            },
            .number("responseBytes", "Bytes of content to the client.") {
                Int(clamping: $0.view.counted.responseBytes)
            },
            .optionalNumber("length", "Bytes of content that the server has announced.") {
                $0.transfer.length.map { Int(clamping: $0) }
            },
            .number("worker", "The worker that it is on.") { $0.transfer.worker },
            .optionalText("client", "The client's address and port.") {
                $0.view.full($0.view.client)
            },
        ])

    private static let tunnel = ObjectShape<Shown>(
        "A tunnel that is open.",
        [
            .text("id", "Its number in replies and logs.") { $0.view.id },
            .time("begin", "When it was asked for.") { $0.view.record.timeMilliseconds },
            .text("host", "What it leads to.") { $0.view.target.host },
            .text("entry", "The host entry that applies.") { $0.view.entry },
            .number("fromClientBytes", "Bytes from the client.") {
                Int(clamping: $0.view.counted.requestBytes)
            },
            .number("toClientBytes", "Bytes to the client.") {
                Int(clamping: $0.view.counted.responseBytes)
            },
            .optionalText("inspected", "The result of inspecting it.") {
                $0.view.record.inspection.map { "\($0.label)" }
            },
            .number("worker", "The worker that it is on.") { $0.transfer.worker },
            .optionalText("client", "The client's address and port.") {
                $0.view.full($0.view.client)
            },
        ])

    private func shown(areTunnels: Bool) -> [Shown] {
        report.transfers.filter { $0.isTunnel == areTunnels }.map {
            Shown(transfer: $0, view: FlowView($0.flow, names, isFull: isFull))
        }
    }

    static let shape = ObjectShape<TransferPage>(
        "What is under way.",
        [
            .access { $0.isFull },
            .time("time", "When it was so.") { $0.report.time },
            .number("requests", "How many requests are under way.") {
                $0.report.count - $0.report.tunnels
            },
            .number("tunnels", "How many tunnels are open.") { $0.report.tunnels },
            .list("transfers", transfer, "The requests with the most bytes, these first.") {
                $0.shown(areTunnels: false)
            },
            .list("open", tunnel, "The tunnels with the most bytes, these first.") {
                $0.shown(areTunnels: true)
            },
            .number("omitted", "How many are left out.") {
                max(0, $0.report.count - $0.report.transfers.count)
            },
        ])
}
