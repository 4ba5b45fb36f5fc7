import CachePolicy
import CacheStore
import Clocks
import HTTPCore
import PinfoldEngine
import Trust

extension AdminResource {
    /// `GET /api/v1/cache/entries`
    static func entries(_ cache: CacheAdministration?) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/cache/entries", caller: .operator, name: "cacheEntries",
            summary: "what is stored, page by page, in no particular order",
            responses: [
                Response(
                    status: 200, description: "A page.", schema: EntryPage.shape.schema),
                Response(
                    status: 409,
                    description: "The cursor is of another database, or of another process "
                        + "(cache-list-outdated): begin with the first page.",
                    schema: AdminError.shape.schema),
            ] + Response.ofUnreadableCache,
            parameters: [
                Parameter(
                    name: "host",
                    description: "Only of these hosts: example.com, *.example.com, "
                        + "**.example.com, perhaps with :PORT."),
                Parameter(
                    name: "limit",
                    description: "The most entries that are looked at for the page, from 1 to "
                        + "\(EntryPage.maximumLimit); \(EntryPage.defaultLimit) by default."),
                Parameter(
                    name: "cursor", description: "What the page before was answered with as next."),
                tier,
            ],
            answer: { answer(to: $0, cache) })
    }

    /// The parameter of those who do not want to know of the disk.
    static var tier: Parameter {
        Parameter(
            name: "tier",
            description: "memory: only what is in memory, whatever the state of the disk.")
    }

    private static func answer(
        to request: AdminRequest, _ cache: CacheAdministration?
    ) -> AdminAnswer {
        guard let cache else { return .noCache }
        let query = AdminQuery(target: request.target)
        if let unknown = query.unknown(besides: ["host", "limit", "cursor", "tier"]) {
            return invalid("unknown parameter \(unknown); expected host, limit, cursor or tier")
        }
        guard query.hasValidTier else { return invalidTier }
        var limit = EntryPage.defaultLimit
        if let text = query["limit"] {
            guard let number = Int(text), (1...EntryPage.maximumLimit).contains(number) else {
                return invalid("limit: expected a number from 1 to \(EntryPage.maximumLimit)")
            }
            limit = number
        }
        var host: HostPattern?
        if let text = query["host"] {
            guard let pattern = try? HostPattern(text) else {
                return invalid("host: expected example.com, *.example.com or **.example.com")
            }
            host = pattern
        }
        var cursor: EntryCursor?
        if let text = query["cursor"] {
            guard let known = EntryCursor(text) else {
                return invalid("cursor: expected next of the page before")
            }
            cursor = known
        }
        return .later { [limit, host, cursor] reply in
            cache.store.entries(
                after: cursor, limit: limit, inMemoryOnly: query.isOfMemoryOnly,
                policy: cache.policy?.cacheOptions ?? PolicyOptions()
            ) { result in
                switch result {
                case .success(let page):
                    reply(.json(EntryPage(page, of: host), as: EntryPage.shape))
                case .failure(let error): reply(error.problem.response)
                }
            }
        }
    }

    static var invalidTier: AdminAnswer { invalid("tier: expected memory, or no tier") }

    static func invalid(_ detail: String) -> AdminAnswer {
        .problem(400, "invalid-query", "Invalid query", detail)
    }
}

/// A part of what is stored.
struct EntryPage: Sendable {
    static let defaultLimit = 100
    static let maximumLimit = 1000

    var entries: [StoredEntry]
    var next: String?

    /// - Parameter host: of which hosts; `nil` for all.
    init(_ page: StoredEntryPage, of host: HostPattern?) {
        let shown = page.entries.filter { info in
            guard let host else { return true }
            let url = StoredURL(key: info.key)
            return host.matches(host: url.host, port: url.port)
        }
        entries = shown.map { StoredEntry($0) }
        next = page.next?.description
    }

    static let shape = ObjectShape<EntryPage>(
        "A part of what is stored.",
        [
            .list("entries", StoredEntry.shape, "Stored responses.") { $0.entries },
            .optionalText("next", "The cursor of the next page; absent at the end.") { $0.next },
        ])
}

extension AdminQuery {
    /// Whether only what is in memory is wanted.
    var isOfMemoryOnly: Bool { self["tier"] == "memory" }

    /// Whether it names a tier that can be asked for alone, or none.
    var hasValidTier: Bool { self["tier"].map { $0 == "memory" } ?? true }
}

/// A stored response, as operators see it. Values of fields by which it was selected are not shown:
/// they may be secrets of clients.
struct StoredEntry: Sendable {
    var info: StoredEntryInfo
    var url: StoredURL
    var trust: String?

    init(_ info: StoredEntryInfo) {
        self.info = info
        url = StoredURL(key: info.key)
        trust = info.trust
    }

    static let shape = ObjectShape<StoredEntry>(
        "A stored response.",
        [
            .text("url", "Its URL, as it was requested from the server.") { $0.url.text },
            .text("host", "The host of the URL, with a port that is not the scheme's own.") {
                $0.url.authority
            },
            .word("method", ["GET", "QUERY"], "The method that it answers; GET includes HEAD.") {
                $0.url.isQuery ? "QUERY" : "GET"
            },
            .optionalText("route", "By what kind of listener or way; absent for the usual one.") {
                $0.url.route
            },
            .number("status", "The status.") { Int($0.info.status) },
            .optionalText("type", "The media type, without parameters.") {
                $0.info.contentType.map { value in
                    let type = value.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 }
                    return String(decoding: type, as: UTF8.self).lowercasedASCII
                }
            },
            .optionalNumber("bytes", "Bytes of content; absent if that is not known.") {
                $0.info.bytes.map { Int(clamping: $0) }
            },
            .number("hits", "How often it was used.") { Int(clamping: $0.info.hits) },
            .time("stored", "When it was stored or last confirmed.") { $0.info.stored * 1000 },
            .time("expires", "Until when it is fresh.") { $0.info.freshUntil * 1000 },
            .optionalTime("lastUsed", "When it was last used.") {
                $0.info.lastUsed.map { $0 * 1000 }
            },
            .optionalText("trust", "How its origin was verified.") { $0.trust },
            .texts("tags", "Its tags.") { entry in
                entry.info.tags.map { String(decoding: $0, as: UTF8.self) }
            },
            .texts("vary", "The names of the fields by which it is selected.") {
                StoredFields.names($0.info.varyNames)
            },
            .texts("tiers", "Where it is: memory, disk.") { entry in
                (entry.info.isInMemory ? ["memory"] : []) + (entry.info.isOnDisk ? ["disk"] : [])
            },
        ])
}

/// The parts of a key that operators see.
struct StoredURL: Sendable, Equatable {
    /// The kind of listener or way; `nil` for the usual one.
    var route: String?
    var isQuery: Bool
    var text: String

    init(key: [UInt8]) {
        // The slices of a representation have numbers behind the URL.
        let whole = key.prefix { $0 != 0 }
        var uri = whole[...]
        var prefix = ""
        if let colon = whole.firstIndex(of: UInt8(ascii: ":")),
            !whole[(colon + 1)...].starts(with: "//".utf8)
        {
            prefix = String(decoding: whole[..<colon], as: UTF8.self)
            uri = whole[(colon + 1)...]
        }
        isQuery = prefix == "query" || prefix.hasSuffix("-query")
        if isQuery { prefix = String(prefix.dropLast(prefix == "query" ? 5 : 6)) }
        route = prefix.isEmpty ? nil : prefix
        text = String(decoding: uri, as: UTF8.self)
    }

    /// The host, an IPv6 address without brackets.
    var host: String {
        guard authority.hasPrefix("[") else { return String(authority.prefix { $0 != ":" }) }
        return String(authority.dropFirst().prefix { $0 != "]" })
    }

    var port: UInt16 {
        let digits = authority.reversed().prefix { $0 != ":" && $0 != "]" }.reversed()
        let isNamed = authority.count > digits.count && authority.dropLast(digits.count).last == ":"
        return (isNamed ? UInt16(String(digits)) : nil) ?? (text.hasPrefix("https:") ? 443 : 80)
    }

    /// `host[:port]`.
    var authority: String {
        let rest = text.drop { $0 != "/" }.dropFirst(2)
        return String(rest.prefix { $0 != "/" })
    }
}
