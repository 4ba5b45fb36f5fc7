import Activity
import Addressing
import Configuration
import EventLoop
import HTTPCore
import TLS

/// One upstream as one worker knows it: a scheme, host and port under one policy, with the
/// connections to it.
final class Origin {
    /// What tells origins apart.
    struct Key: Hashable {
        /// Lower case, an address without brackets.
        var host: String
        var port: UInt16
        /// TLS is spoken to it.
        var isSecure: Bool
        /// The port that the request named, which decides the host entry: an upgraded request for
        /// port 80 goes to 443.
        var requestedPort: UInt16
        /// The operator named it as a reverse route's upstream.
        var isFixed: Bool
    }

    let key: Key
    /// `scheme://host[:port]` without a default port: the start of its cache keys.
    let cacheKeyPrefix: [UInt8]
    /// `host[:port]`: the value of Host.
    let authority: [UInt8]
    let policy: PolicySnapshot
    /// The index of the host entry that applies; nil for none.
    let entryIndex: Int?
    /// The label of its metrics.
    let route: Int
    /// What TLS is spoken with; nil for clear text.
    let tls: TLSClientContext?
    let reachability: HostReachability?
    let cacheStores: Bool
    let firstByteMilliseconds: Int64
    /// What was decided about the host by name or, for a literal, by address.
    let refusal: DestinationRefusal?
    /// The trust under which its responses are obtained; the same over restarts.
    let fingerprint: UInt64
    /// Request fields, in lower case, whose values are part of its cache keys.
    private let extraKeyFields: [String]

    var idle = ContiguousArray<UpstreamConnection>()
    var waiters = WaiterQueue()
    /// Connections being established.
    var connecting = 0
    /// Connections established: idle and in use.
    var open = 0
    /// The loop's time of the last use.
    var lastUse: Int64 = 0

    init(
        key: Key, policy: PolicySnapshot, entryIndex: Int?, refusal: DestinationRefusal?
    ) {
        self.key = key
        self.policy = policy
        self.entryIndex = entryIndex
        self.refusal = refusal
        route = policy.route(entryIndex: entryIndex)
        tls = key.isSecure ? policy.tls(entryIndex: entryIndex) : nil
        fingerprint = policy.fingerprint(entryIndex: entryIndex)
        let bracketed = key.host.utf8.contains(UInt8(ascii: ":")) ? "[\(key.host)]" : key.host
        let isDefault = key.port == (key.isSecure ? 443 : 80)
        let authority = isDefault ? bracketed : "\(bracketed):\(key.port)"
        self.authority = Array(authority.utf8)
        cacheKeyPrefix = Array("\(key.isSecure ? "https" : "http")://\(authority)".utf8)
        let entry = entryIndex.map { policy.configuration.hosts.entries[$0] }
        cacheStores = policy.configuration.cache.isEnabled && (entry?.cacheStores ?? true)
        extraKeyFields = entry?.cacheKeyFields ?? []
        firstByteMilliseconds =
            entry?.requestTimeoutMilliseconds
            ?? policy.configuration.timeouts.firstByteMilliseconds
        reachability = policy.reachability(host: key.host, port: key.requestedPort)
    }

    /// Bytes that `appendExtraKey` writes at most.
    func extraKeyBytes(_ request: borrowing RequestHead) -> Int {
        extraKeyFields.isEmpty ? 0 : request.length + extraKeyFields.count * 64
    }

    /// Appends the values of the route's extra key fields. A space cannot occur in a URI, so the
    /// key stays apart from every other.
    func appendExtraKey(
        of request: borrowing RequestHead, in bytes: Span<UInt8>, to writer: inout HeadWriter
    ) {
        for name in extraKeyFields {
            writer.append(byte: 0x20)
            writer.append(text: name)
            for field in request.fields {
                let fieldName = bytes.extracting(field.name.indices)
                guard fieldName.count == name.utf8.count,
                    zip(fieldName.indices, name.utf8).allSatisfy({
                        ByteClass.lowercased(fieldName[$0]) == $1
                    })
                else { continue }
                writer.append(byte: UInt8(ascii: "="))
                writer.append(field.value, of: bytes)
            }
        }
    }

    /// Nothing refers to it but the table.
    var isUnused: Bool { open == 0 && connecting == 0 && waiters.isEmpty }
}

/// Who waits for a connection, first come first served.
struct WaiterQueue {
    private struct Waiter {
        var consumer: any UpstreamConsumer
        var wantsFresh: Bool
    }

    private var waiters: [Waiter] = []

    var isEmpty: Bool { waiters.isEmpty }
    var count: Int { waiters.count }

    mutating func append(_ consumer: any UpstreamConsumer, wantsFresh: Bool) {
        waiters.append(Waiter(consumer: consumer, wantsFresh: wantsFresh))
    }

    /// Takes the first who would use the connection.
    mutating func take(isFresh: Bool) -> (any UpstreamConsumer)? {
        guard let index = waiters.firstIndex(where: { isFresh || !$0.wantsFresh }) else {
            return nil
        }
        return waiters.remove(at: index).consumer
    }

    mutating func remove(_ consumer: any UpstreamConsumer) {
        waiters.removeAll { $0.consumer === consumer }
    }

    mutating func takeAll() -> [any UpstreamConsumer] {
        defer { waiters = [] }
        return waiters.map(\.consumer)
    }
}
