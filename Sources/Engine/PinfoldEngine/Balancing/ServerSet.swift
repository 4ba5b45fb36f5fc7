import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Synchronization
import Trust

/// The servers of one reverse listener under a configuration, shared by all workers.
package final class ServerSet: Sendable {
    /// The listener's name.
    package let listener: String
    package let configuration: UpstreamSet
    /// In the order of the configuration.
    package let servers: [ServerState]
    /// The retries that are saved up; goes on over reloads.
    private let budget: SharedBudget
    /// The values of the cookie that binds clients, by server; empty without one.
    let cookieValues: [[UInt8]]
    let slowStart: SlowStart

    final class SharedBudget: Sendable {
        let thousandths: Atomic<Int>

        init(_ first: Int) { thousandths = Atomic(first) }
    }

    /// - Parameters:
    ///   - previous: the set of the same listener before a reload, whose servers go on.
    ///   - key: the key of cookies that bind clients to servers.
    ///   - now: in milliseconds of the monotonic clock.
    init(
        listener: String, _ configuration: UpstreamSet, following previous: ServerSet?,
        key: StickyKey, now: Int64
    ) {
        self.listener = listener
        self.configuration = configuration
        let known = Dictionary(
            (previous?.servers ?? []).map { ($0.url, $0) }, uniquingKeysWith: { first, _ in first })
        servers = configuration.servers.map { server in
            let url = server.origin.url
            return known[url] ?? ServerState(url: url, cameAt: previous == nil ? 0 : now)
        }
        let percent = configuration.retries.budgetPercent
        budget = previous?.budget ?? SharedBudget(percent == 0 ? 0 : RetryBudget.atFirst)
        cookieValues =
            configuration.stickyCookie == nil
            ? [] : configuration.servers.map { key.value(of: $0.origin.url) }
        slowStart = SlowStart(milliseconds: configuration.slowStartMilliseconds)
    }

    // MARK: The budget

    /// A request adds its share.
    func deposit() {
        let saved = budget.thousandths.load(ordering: .relaxed)
        guard saved < RetryBudget.most else { return }
        let added =
            RetryBudget.added(to: saved, percent: configuration.retries.budgetPercent) - saved
        budget.thousandths.add(added, ordering: .relaxed)
    }

    /// Whether a request may be sent again; it is counted then.
    func takeRetry() -> Bool {
        var saved = budget.thousandths.load(ordering: .relaxed)
        while let left = RetryBudget.taken(from: saved) {
            let result = budget.thousandths.weakCompareExchange(
                expected: saved, desired: left, ordering: .relaxed)
            if result.exchanged { return true }
            saved = result.original
        }
        return false
    }

    // MARK: Results

    /// A request to a server failed.
    func failed(
        _ server: Int, _ failure: ServerFailureReason, _ cause: String, at now: Int64
    ) -> ServerState.Change? {
        let rules = configuration.ejection
        return servers[server].failed(failure, cause, at: now, by: rules) {
            let ejected = servers.indices.count {
                $0 != server && servers[$0].standing(weight: 1, at: now) == .ejected
            }
            return rules.mayEject(besides: ejected, of: servers.count)
        }
    }

    /// In how many seconds a client may ask again if there is no server.
    var retrySeconds: Int64 {
        max(1, (configuration.health.intervalMilliseconds + 999) / 1000)
    }

    /// The server that a cookie's value binds to; `nil` if it is none of ours.
    func server(ofCookie value: Span<UInt8>) -> Int? {
        cookieValues.firstIndex { known in
            known.count == value.count && value.indices.allSatisfy { known[$0] == value[$0] }
        }
    }

    /// The Set-Cookie that binds a client to a server.
    /// - Parameter isSecure: whether the client speaks TLS.
    func cookie(of server: Int, isSecure: Bool) -> String {
        let value = String(decoding: cookieValues[server], as: UTF8.self)
        return "\(configuration.stickyCookie ?? "")=\(value); Path=/; HttpOnly; SameSite=Lax"
            + (isSecure ? "; Secure" : "")
    }
}

/// The secret from which the values of cookies are made that bind clients to servers: they tell
/// nothing about a server, and cannot be made up.
package struct StickyKey: Sendable, Equatable {
    /// Bytes of a key.
    package static let byteCount = 32

    private let bytes: [UInt8]

    /// - Parameter bytes: ``byteCount`` of them.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// A key for this process only.
    package init() {
        bytes = (0..<Self.byteCount).map { _ in .random(in: 0...255) }
    }

    /// The value for a server: the first 128 bits of HMAC-SHA-256 (RFC 2104) of its URL, in
    /// base64url.
    func value(of url: String) -> [UInt8] {
        let block = bytes + [UInt8](repeating: 0, count: 64 - Self.byteCount)
        let inner = block.map { $0 ^ 0x36 } + Array(url.utf8)
        guard let hashed = SHA256Digest(hashing: inner.span) else { return [] }
        let outer = block.map { $0 ^ 0x5C } + hashed.bytes
        guard let digest = SHA256Digest(hashing: outer.span) else { return [] }
        return Self.base64URL(digest.bytes.prefix(16))
    }

    private static func base64URL(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(letters[Int(bits >> UInt32(count) & 63)])
            }
        }
        if count > 0 { text.append(letters[Int(bits << UInt32(6 - count) & 63)]) }
        return text
    }
}

/// The sets of all listeners of a configuration, with the trust under which their responses are
/// stored: that of all their servers.
struct ServerSets: Sendable {
    let sets: [String: ServerSet]
    let trust: [String: TrustFingerprint]

    init(
        _ configuration: ConfigurationSnapshot, following previous: ServerSets?, key: StickyKey,
        now: Int64, trust fingerprint: (UpstreamOrigin) -> TrustFingerprint
    ) throws(TLSContextError) {
        var sets: [String: ServerSet] = [:]
        var trust: [String: TrustFingerprint] = [:]
        for listener in configuration.listeners {
            guard case .balanced(let set) = listener.kind else { continue }
            let known = previous?.sets[listener.name]
            if let known, known.configuration == set {
                sets[listener.name] = known
            } else {
                sets[listener.name] = ServerSet(
                    listener: listener.name, set, following: known, key: key, now: now)
            }
            trust[listener.name] = try Self.joined(set.servers.map { fingerprint($0.origin) })
        }
        self.sets = sets
        self.trust = trust
    }

    /// A response may come from any server: what is stored is used as long as none of them is under
    /// other rules.
    private static func joined(
        _ all: [TrustFingerprint]
    ) throws(TLSContextError) -> TrustFingerprint {
        let distinct = Set(all)
        if distinct.count == 1, let only = distinct.first { return only }
        var form = TrustForm()
        form.add(-4)
        for one in distinct.map(\.digest.bytes).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            form.add(one)
        }
        return try TrustFingerprint(form)
    }
}
