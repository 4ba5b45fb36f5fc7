import CachePolicy
import CacheStore
import Clocks
import HTTPCore
import Locking
import PinfoldEngine

extension AdminResource {
    /// `GET /api/v1/cache/entry`
    static func entry(_ cache: CacheAdministration?) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/cache/entry", caller: .operator, name: "cacheEntry",
            summary: "what is stored for a URL, and whether a request would get it now",
            responses: [
                Response(
                    status: 200, description: "All variants.", schema: StoredURLAnswer.shape.schema)
            ] + Response.ofUnreadableCache,
            parameters: [
                Parameter(name: "url", description: "The URL.", isRequired: true),
                Parameter(
                    name: "field",
                    description: "A field of the request that is judged, as name: value.",
                    isRepeatable: true),
                tier,
            ],
            answer: { answer(to: $0, cache) })
    }

    private static func answer(
        to request: AdminRequest, _ cache: CacheAdministration?
    ) -> AdminAnswer {
        guard let cache, let policy = cache.policy else { return .noCache }
        let query = AdminQuery(target: request.target)
        if let unknown = query.unknown(besides: ["url", "field", "tier"]) {
            return invalid("unknown parameter \(unknown); expected url, field or tier")
        }
        guard query.hasValidTier else { return invalidTier }
        guard let url = query["url"] else { return invalid("expected url") }
        let lookup: StoredLookup
        do throws(WireError) {
            lookup = try StoredLookup(url, fields: query.all("field"), under: policy)
        } catch {
            return invalid(
                "url \(url): expected http://HOST/PATH or https://HOST/PATH, and each field as "
                    + "name: value")
        }
        return .later { reply in
            cache.look(for: lookup, inMemoryOnly: query.isOfMemoryOnly) { result in
                switch result {
                case .success(let variants):
                    reply(
                        .json(
                            StoredURLAnswer(url: url, variants: variants),
                            as: StoredURLAnswer.shape))
                case .failure(let error): reply(error.problem.response)
                }
            }
        }
    }
}

/// What is looked up to find what is stored for a URL.
struct StoredLookup: Sendable {
    private let request: AssumedRequest
    private let policy: PolicySnapshot
    let keys: [CacheKey]

    /// - Parameter fields: of the request that is judged, as `name: value`.
    /// - Throws: the error for which such a request would be refused.
    init(_ url: String, fields: [String], under policy: PolicySnapshot) throws(WireError) {
        let cached = try CachedURL(url, under: policy)
        request = try AssumedRequest(url, fields: fields, under: policy)
        self.policy = policy
        keys = cached.keys(under: policy).flatMap { [$0, $0.ofQuery] }
    }

    /// What would become of the request by what was found.
    func judged(_ entries: [FoundEntry]) -> [StoredVariant] {
        let roles = policy.configuration.listeners.map { ListenerSockets.role($0) }
        let now = Clock.wallMilliseconds() / 1000
        return entries.map { entry in
            let use = request.use(
                of: entry.response, key: entry.key, under: policy, roles: roles, now: now)
            return StoredVariant(entry, use: use, now: now)
        }
    }
}

/// What is stored for a URL.
struct StoredURLAnswer: Sendable {
    var url: String
    var variants: [StoredVariant]

    static let shape = ObjectShape<StoredURLAnswer>(
        "What is stored for a URL.",
        [
            .text("url", "The URL that was asked for.") { $0.url },
            .list("variants", StoredVariant.shape, "Stored responses; none if it is not stored.") {
                $0.variants
            },
        ])
}

/// A stored response for a URL.
struct StoredVariant: Sendable {
    var entry: FoundEntry
    var url: StoredURL
    var use: StoredUse
    var now: Int64

    init(_ entry: FoundEntry, use: StoredUse, now: Int64) {
        self.entry = entry
        self.use = use
        self.now = now
        url = StoredURL(key: entry.key)
    }

    static let shape = ObjectShape<StoredVariant>(
        "A stored response.",
        [
            .text("url", "Its URL, as it was requested from the server.") { $0.url.text },
            .word("method", ["GET", "QUERY"], "The method that it answers; GET includes HEAD.") {
                $0.url.isQuery ? "QUERY" : "GET"
            },
            .optionalText("route", "By what kind of listener or way; absent for the usual one.") {
                $0.url.route
            },
            .number("status", "The status.") { Int($0.entry.response.metadata.status) },
            .texts("fields", "The stored fields, without Set-Cookie and what is a secret.") {
                StoredFields.lines(of: $0.entry.response.head)
            },
            .optionalNumber("bytes", "Bytes of content; absent if that is not known.") {
                $0.entry.response.metadata.bodyBytes.map { Int(clamping: $0) }
            },
            .number("age", "Its age in seconds.") {
                Int($0.entry.response.metadata.age(at: $0.now))
            },
            .number("freshFor", "For how many seconds it is still fresh; 0 if it is stale.") {
                Int(max(0, $0.entry.response.metadata.freshUntil - $0.now))
            },
            .number("staleFor", "For how many seconds it has been stale; 0 if it is fresh.") {
                Int(max(0, $0.now - $0.entry.response.metadata.freshUntil))
            },
            .word(
                "lifetimeFrom", FreshnessSource.allCases.map(\.word), "What its lifetime is from."
            ) { $0.entry.response.metadata.source.word },
            .texts("tags", "Its tags.") { StoredFields.tags(of: $0.entry.response.head) },
            .texts("vary", "The names of the fields by which it is selected.") {
                StoredFields.names($0.entry.response.varyKey.names)
            },
            .optionalText("trust", "How its origin was verified.") { $0.entry.trust },
            .word("tier", ["memory", "disk"], "Where it was found first.") {
                $0.entry.isInMemory ? "memory" : "disk"
            },
            .word(
                "answer", StoredUse.Answer.allCases.map(\.rawValue),
                "What would become of the request now."
            ) { $0.use.answer.rawValue },
            .optionalText("reason", "Why; absent if it is fresh and used.") { $0.use.reason },
        ])
}

extension FreshnessSource {
    fileprivate var word: String {
        switch self {
        case .sharedMaxAge: "s-maxage"
        case .maxAge: "max-age"
        case .expires: "expires"
        case .heuristic: "heuristic"
        case .rule: "rule"
        case .none: "none"
        }
    }
}

/// A stored response that was found.
struct FoundEntry: Sendable {
    var key: [UInt8]
    var response: CachedResponse
    var isInMemory: Bool
    var trust: String?
}

extension CacheAdministration {
    /// Looks for what is stored for a URL, and judges it.
    /// - Parameter completion: gets all variants, or why some would be missing.
    func look(
        for lookup: StoredLookup, inMemoryOnly: Bool,
        _ completion: @escaping @Sendable (Result<[StoredVariant], CacheListingError>) -> Void
    ) {
        look(at: lookup.keys, inMemoryOnly: inMemoryOnly) { result in
            completion(result.map { lookup.judged($0) })
        }
    }

    /// Looks at all variants of keys, in memory and on disk, one key after the other. Nothing
    /// counts as used.
    /// - Parameter completion: gets them, or why some would be missing.
    func look(
        at keys: [CacheKey], inMemoryOnly: Bool = false,
        _ completion: @escaping @Sendable (Result<[FoundEntry], CacheListingError>) -> Void
    ) {
        look(at: keys[...], inMemoryOnly, [], completion)
    }

    private func look(
        at keys: ArraySlice<CacheKey>, _ inMemoryOnly: Bool, _ found: [FoundEntry],
        _ completion: @escaping @Sendable (Result<[FoundEntry], CacheListingError>) -> Void
    ) {
        guard let key = keys.first else { return completion(.success(found)) }
        store.look(at: key, inMemoryOnly: inMemoryOnly, policy: options(of: key)) {
            [self] result in
            switch result {
            case .success(let seen):
                let more = seen.map { one in
                    FoundEntry(
                        key: key.bytes, response: one.response, isInMemory: one.isInMemory,
                        trust: store.description(ofPolicy: one.response.policy))
                }
                look(at: keys.dropFirst(), inMemoryOnly, found + more, completion)
            case .failure(let error): completion(.failure(error))
            }
        }
    }

    /// The rules by which workers read what is stored under a key.
    private func options(of key: CacheKey) -> PolicyOptions {
        guard let policy else { return PolicyOptions() }
        let url = StoredURL(key: key.bytes)
        let request = try? AssumedRequest(url.text, fields: [], under: policy)
        let roles = policy.configuration.listeners.map { ListenerSockets.role($0) }
        let basis = request?.basis(
            ofKey: url.isQuery ? key.bytes.ofGet : key.bytes, under: policy, roles: roles)
        return basis?.options ?? policy.cacheOptions
    }
}

/// The lines of a stored head.
enum StoredFields {
    /// What is not shown: it may be a secret of the client that caused the response to be stored.
    private static let secrets = ["set-cookie", "authentication-info", "proxy-authentication-info"]

    /// `Name: value` each.
    static func lines(of head: UnsafeRawBufferPointer) -> [String] {
        all(of: head).filter { line in
            !secrets.contains(line.prefix { $0 != ":" }.lowercasedASCII)
        }
    }

    private static func all(of head: UnsafeRawBufferPointer) -> [String] {
        String(decoding: head, as: UTF8.self).split(separator: "\r\n").map { String($0) }
    }

    /// Names as `VaryKey` has them: each after its length.
    static func names(_ bytes: [UInt8]) -> [String] {
        var names: [String] = []
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + 1 + Int(bytes[position]))
            names.append(String(decoding: bytes[(position + 1)..<end], as: UTF8.self))
            position = end
        }
        return names
    }

    static func tags(of head: UnsafeRawBufferPointer) -> [String] {
        all(of: head).flatMap { line -> [String] in
            let name = line.prefix { $0 != ":" }.lowercasedASCII
            let value = line.dropFirst(name.count + 1)
            switch name {
            case "surrogate-key": return value.split(separator: " ").map { String($0) }
            case "cache-tag", "cache-groups":
                return value.split(separator: ",").map { member in
                    String(member.drop { $0 == " " }.filter { $0 != "\"" })
                }
            default: return []
            }
        }
    }
}
