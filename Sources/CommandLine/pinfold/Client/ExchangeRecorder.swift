import Clocks
import HTTPTypes
import Locking
import PinfoldClient

/// Records the exchanges of a session in the order of their beginnings, and how its tasks ended.
final class ExchangeRecorder: EventMonitor {
    private struct Exchange {
        let task: TaskIdentifier
        /// In milliseconds since 1970.
        let began: Int64
        let request: HTTPRequest
        var response: HTTPResponse?
        var failure: ClientError?
    }

    private struct State {
        var exchanges: [Exchange] = []
        var completions: [TaskIdentifier: TaskCompletion] = [:]
        /// The contents of tasks' last responses.
        var contents: [TaskIdentifier: [UInt8]] = [:]
    }

    private let state = Locked(State())
    private let keepsExchanges: Bool

    /// - Parameter keepsExchanges: Whether exchanges are recorded, not only how tasks ended.
    init(keepsExchanges: Bool) { self.keepsExchanges = keepsExchanges }

    func request(_ task: TaskIdentifier, _ event: RequestEvent) {
        guard keepsExchanges else { return }
        switch event {
        case .sent(let request, _):
            let exchange = Exchange(
                task: task, began: Clock.wallMilliseconds(), request: request)
            state.withLock { $0.exchanges.append(exchange) }
        case .received(let response, _): change(task) { $0.response = response }
        case .failed(let error, _): change(task) { $0.failure = error }
        case .adapted, .redirected, .challenged, .retried: break
        }
    }

    func session(_ event: SessionEvent) {
        guard case .didComplete(let end) = event else { return }
        state.withLock { $0.completions[end.task] = end }
    }

    private func change(_ task: TaskIdentifier, _ body: (inout Exchange) -> Void) {
        state.withLock { state in
            guard let last = state.exchanges.lastIndex(where: { $0.task == task }) else { return }
            body(&state.exchanges[last])
        }
    }

    /// Keeps the content of a task's last response.
    func keep(_ content: [UInt8], of task: TaskIdentifier) {
        state.withLock { $0.contents[task] = content }
    }

    /// How a task ended, once the session's callbacks have been called.
    func completion(of task: TaskIdentifier) -> TaskCompletion? {
        state.withLock { $0.completions[task] }
    }

    /// The exchanges, once the session has ended.
    ///
    /// - Parameter content: The content of requests, of which as much is in an exchange as was sent
    ///   in it.
    func entries(sending content: [UInt8]) -> [HARArchive.Entry] {
        let (exchanges, completions, contents) = state.withLock {
            ($0.exchanges, $0.completions, $0.contents)
        }
        let counts = exchanges.reduce(into: [:]) { $0[$1.task, default: 0] += 1 }
        var begun: [TaskIdentifier: Int] = [:]
        return exchanges.map { exchange in
            let number = begun[exchange.task, default: 0]
            begun[exchange.task] = number + 1
            let transactions = completions[exchange.task]?.metrics.transactions ?? []
            let transaction = number < transactions.count ? transactions[number] : nil
            let isLast = number + 1 == counts[exchange.task]
            return HARArchive.Entry(
                began: exchange.began, request: exchange.request,
                sent: Array(content.prefix(Int(clamping: transaction?.sentBytes ?? 0))),
                response: exchange.response,
                content: isLast ? contents[exchange.task] ?? [] : [],
                transaction, failure: exchange.failure)
        }
    }
}
