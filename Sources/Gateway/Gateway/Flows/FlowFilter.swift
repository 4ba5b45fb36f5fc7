import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import Trust

/// Which exchanges somebody wants to see.
struct FlowFilter: Sendable {
    /// The most exchanges in an answer, and how many by default.
    static let maximumLimit = FlowRing.capacity
    static let defaultLimit = 100

    private var host: HostPattern?
    private var texts: [Member: String] = [:]
    private var client: IPNetwork?
    private var status: ClosedRange<UInt16>?
    private var isFailed = false
    var limit = defaultLimit
    /// Only those before this number, or after that one.
    private var before: UInt64?
    private var after: UInt64?

    /// What is compared as a text.
    fileprivate enum Member: String, CaseIterable {
        case entry, method, user, rule, reason, cache, pin, kind
    }

    /// What says who asked: to compare with it would be to learn it.
    private static let proven = ["client", "user", "rule"]

    /// The names of the parameters, with what they mean.
    static let parameters: [AdminResource.Parameter] = [
        parameter("host", "What it was for: example.com, *.example.com, perhaps with :PORT."),
        parameter("entry", "The host entry that applied."),
        parameter("method", "The method."),
        parameter("status", "The status: 502, or 5xx for all of these."),
        parameter("reason", "Why it was refused or failed: a token."),
        parameter("failed", "true: only those that were refused or failed."),
        parameter("cache", "What the cache had to do with it."),
        parameter("pin", "What pins had to do with the server."),
        parameter("kind", "What it was."),
        parameter("client", "The client's address or network; with the token."),
        parameter("user", "Who asked; with the token."),
        parameter("rule", "The access rule that decided; with the token."),
        parameter("limit", "The most exchanges, from 1 to \(maximumLimit); 100 by default."),
        parameter("cursor", "What the page before was answered with as next."),
        parameter("after", "Only those after this sequence."),
    ]

    /// Those of them that say which exchanges are wanted, and not how many of those that are held.
    static let matching = parameters.filter { !["limit", "cursor", "after"].contains($0.name) }

    private static func parameter(_ name: String, _ text: String) -> AdminResource.Parameter {
        AdminResource.Parameter(name: name, description: text)
    }

    /// Reads it from a query.
    /// - Parameters:
    ///   - isFull: whether who asks may see who asked.
    ///   - parameters: those that the query may have.
    init(
        _ query: AdminQuery, isFull: Bool,
        taking parameters: [AdminResource.Parameter] = Self.parameters
    ) throws(AdminError) {
        let names = parameters.map(\.name)
        if let unknown = query.unknown(besides: names) {
            throw Self.invalid(
                "unknown parameter \(unknown); expected one of " + names.joined(separator: ", "))
        }
        if !isFull, let name = Self.proven.first(where: { query[$0] != nil }) {
            throw AdminError(
                403, "token-needed", "Token needed",
                "\(name) is only for those with the token, a certificate or the Unix socket")
        }
        if let text = query["host"] {
            guard let pattern = try? HostPattern(text) else {
                throw Self.invalid("host: expected example.com, *.example.com or **.example.com")
            }
            host = pattern
        }
        for member in Member.allCases {
            guard let text = query[member.rawValue] else { continue }
            if let words = member.words, !words.contains(text) {
                let expected =
                    member == .reason
                    ? "a token of `pinfold reasons`" : words.joined(separator: ", ")
                throw Self.invalid("\(member.rawValue): expected \(expected)")
            }
            texts[member] = text
        }
        if let text = query["client"] {
            guard let network = try? IPNetwork(parsing: text) else {
                throw Self.invalid("client: expected 10.0.0.1 or 10.0.0.0/8")
            }
            client = network
        }
        if let text = query["failed"] {
            guard text == "true" else { throw Self.invalid("failed: expected true") }
            isFailed = true
        }
        try readNumbers(query)
    }

    private mutating func readNumbers(_ query: AdminQuery) throws(AdminError) {
        if let text = query["status"] {
            let digits = text.prefix { $0.isASCII && $0.isNumber }
            if text.count == 3, digits.count == 3, let number = UInt16(digits) {
                status = number...number
            } else if text.count == 3, digits.count == 1, text.hasSuffix("xx"),
                let number = UInt16(digits)
            {
                status = number * 100...number * 100 + 99
            } else {
                throw Self.invalid("status: expected 502 or 5xx")
            }
        }
        if let text = query["limit"] {
            guard let number = Int(text), (1...Self.maximumLimit).contains(number) else {
                throw Self.invalid("limit: expected a number from 1 to \(Self.maximumLimit)")
            }
            limit = number
        }
        before = try Self.number("cursor", query, "next of the page before")
        after = try Self.number("after", query, "a sequence")
    }

    private static func number(
        _ name: String, _ query: AdminQuery, _ expected: String
    ) throws(AdminError) -> UInt64? {
        guard let text = query[name] else { return nil }
        guard let number = UInt64(text) else {
            throw invalid("\(name): expected \(expected)")
        }
        return number
    }

    static func invalid(_ detail: String) -> AdminError {
        AdminError(400, "invalid-query", "Invalid query", detail)
    }

    /// Whether an exchange is wanted.
    func accepts(_ view: FlowView) -> Bool {
        let counted = view.counted
        if let before, view.flow.sequence >= before { return false }
        if let after, view.flow.sequence <= after { return false }
        if isFailed, counted.failure == nil { return false }
        if let status, !status.contains(counted.status) { return false }
        if let client, !client.contains(client: view.record.clientAddress) { return false }
        for (member, text) in texts where member.value(of: view) != text { return false }
        return isMet(by: view.target)
    }

    /// Whether an exchange that has just begun may be wanted, as far as its request tells.
    func mayAccept(_ flow: HeldFlow) -> Bool {
        if let client, !client.contains(client: flow.record.clientAddress) { return false }
        if let method = texts[.method], method != flow.methodText { return false }
        return host == nil || isMet(by: FlowTarget(flow))
    }

    private func isMet(by target: FlowTarget) -> Bool {
        guard let host else { return true }
        let (name, port) = target.hostAndPort
        return host.matches(host: name, port: port ?? (target.scheme == "http" ? 80 : 443))
    }
}

extension FlowFilter.Member {
    /// The words that it may have; `nil` for any.
    fileprivate var words: [String]? {
        switch self {
        case .entry, .method, .user, .rule: nil
        case .reason: Reason.tokens
        case .cache: CacheResult.allCases.map { "\($0.label)" }
        case .pin: PinVerdict.allCases.map { "\($0.label)" }
        case .kind: ExchangeKind.allCases.map { "\($0.label)" }
        }
    }

    /// What an exchange has.
    fileprivate func value(of view: FlowView) -> String? {
        switch self {
        case .entry: view.entry
        case .method: view.flow.methodText
        case .user: view.flow.user
        case .rule: view.flow.rule
        case .reason: view.reason
        case .cache: "\(view.counted.cache.label)"
        case .pin: view.record.pins.map { "\($0.label)" }
        case .kind: "\(view.counted.kind.label)"
        }
    }
}
