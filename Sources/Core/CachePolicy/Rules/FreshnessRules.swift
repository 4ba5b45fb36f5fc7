/// What a route says about the freshness of its responses, in addition to what they say themselves.
/// Whatever is `nil` or empty leaves RFC 9111 as it is.
///
/// The lifetime of a response is the first of these that there is: what it states itself (RFC 9111
/// §4.2.1), ``byStatus``, ``defaultSeconds``, the heuristic (§4.2.2). Then ``minimumSeconds``
/// raises it and ``maximumSeconds`` lowers it.
public struct FreshnessRules: Sendable, Equatable {
    /// Seconds for responses that state no lifetime and may be given one (§4.2.2), in place of the
    /// heuristic.
    public var defaultSeconds: Int64?
    /// The shortest lifetime in seconds of responses below 400 that may be stored, whatever they
    /// state. ``byStatus`` counts more.
    public var minimumSeconds: Int64?
    /// The longest lifetime in seconds, whatever responses state.
    public var maximumSeconds: Int64?
    /// Seconds for responses that state no lifetime, by their status.
    public var byStatus: StatusLifetimes?
    /// Which requirements of requests and responses do not count; `nil` for none.
    public var overrides: PolicyOverrides?

    /// Creates rules that change nothing.
    public init() {}

    /// The longest lifetime that a rule may state, in seconds: ten years.
    public static let maximumLifetimeSeconds: Int64 = 3_650 * 86_400

    /// These rules, with those of `other` where they say nothing.
    public func over(_ other: FreshnessRules) -> FreshnessRules {
        var rules = self
        rules.defaultSeconds = defaultSeconds ?? other.defaultSeconds
        rules.minimumSeconds = minimumSeconds ?? other.minimumSeconds
        rules.maximumSeconds = maximumSeconds ?? other.maximumSeconds
        rules.byStatus = byStatus ?? other.byStatus
        rules.overrides = overrides ?? other.overrides
        return rules
    }
}

/// Freshness lifetimes by status: a code (`404`), or all codes of a class (`4xx`). A code counts
/// more than its class.
public struct StatusLifetimes: Sendable, Equatable {
    /// What a lifetime is for.
    public enum Statuses: Sendable, Hashable, Comparable, CustomStringConvertible {
        /// The codes with this first digit, 2 to 5.
        case ofClass(UInt8)
        /// This code.
        case code(UInt16)

        /// `404` or `4xx`; `nil` if the text is neither, or is about no response that can be
        /// stored.
        public init?(_ text: String) {
            let bytes = Array(text.utf8)
            guard bytes.count == 3, (UInt8(ascii: "2")...UInt8(ascii: "5")).contains(bytes[0])
            else { return nil }
            if bytes[1] == UInt8(ascii: "x"), bytes[2] == UInt8(ascii: "x") {
                self = .ofClass(bytes[0] - UInt8(ascii: "0"))
            } else if bytes.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
                let code = UInt16(text)
            {
                self = .code(code)
            } else {
                return nil
            }
        }

        /// As it is written.
        public var description: String {
            switch self {
            case .ofClass(let digit): "\(digit)xx"
            case .code(let code): "\(code)"
            }
        }
    }

    /// One of them.
    public struct Lifetime: Sendable, Equatable {
        public let statuses: Statuses
        public let seconds: Int64
    }

    /// All of them, in the order of what they are for, so that equal tables have one form.
    public private(set) var lifetimes: [Lifetime] = []

    /// Creates a table without any.
    public init() {}

    /// Sets the lifetime of some responses.
    public mutating func set(_ seconds: Int64, for statuses: Statuses) {
        lifetimes.removeAll { $0.statuses == statuses }
        lifetimes.append(Lifetime(statuses: statuses, seconds: seconds))
        lifetimes.sort { $0.statuses < $1.statuses }
    }

    /// The lifetime of responses with this status, in seconds; `nil` if nothing is said about it.
    public func seconds(for status: UInt16) -> Int64? {
        func seconds(_ statuses: Statuses) -> Int64? {
            lifetimes.first { $0.statuses == statuses }?.seconds
        }
        return seconds(.code(status)) ?? seconds(.ofClass(UInt8(clamping: status / 100)))
    }

    /// Whether some of them are for responses that the heuristic is not for (RFC 9111 §4.2.2).
    public var extendsHeuristics: Bool {
        lifetimes.contains { lifetime in
            switch lifetime.statuses {
            case _ where lifetime.seconds == 0: false
            case .ofClass: true
            case .code(let code): !StatusRules.isHeuristicallyCacheable(code)
            }
        }
    }

    /// Whether responses with this status can be given a lifetime. Those about one request only
    /// (401, 412, 429 …) never answer another one.
    public static func mayHave(_ status: UInt16) -> Bool {
        (200..<600).contains(status) && status != 304
            && !StatusRules.isAboutThisRequestOnly(status)
    }
}

/// What does not count on a route although requests or responses say so. All but the last two are
/// outside RFC 9111.
public struct PolicyOverrides: OptionSet, Sendable, Hashable {
    /// One bit for each.
    public let rawValue: UInt8
    /// Creates a set from its bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `no-store` in responses (RFC 9111 §5.2.2.5).
    public static let noStore = PolicyOverrides(rawValue: 1)
    /// `private` in responses (§5.2.2.7).
    public static let isPrivate = PolicyOverrides(rawValue: 2)
    /// `no-cache` in responses (§5.2.2.4), and Pragma's.
    public static let noCache = PolicyOverrides(rawValue: 4)
    /// `must-revalidate`, `proxy-revalidate`, and that `s-maxage` implies it (§5.2.2.2, §5.2.2.8,
    /// §5.2.2.10): responses that have become stale may be served where the route allows it.
    public static let mustRevalidate = PolicyOverrides(rawValue: 8)
    /// `no-cache`, `max-age` and Pragma in requests (§5.2.1), which RFC 9111 leaves to the cache: a
    /// client that reloads gets what is stored.
    public static let requestNoCache = PolicyOverrides(rawValue: 16)
    /// Cookie in requests: a lifetime that the response does not state is given to responses to
    /// them, too.
    public static let requestCookie = PolicyOverrides(rawValue: 32)

    /// All of them, by their names in configurations.
    public static let named: [(name: String, override: PolicyOverrides)] = [
        ("noStore", .noStore), ("private", .isPrivate), ("noCache", .noCache),
        ("mustRevalidate", .mustRevalidate), ("requestNoCache", .requestNoCache),
        ("requestCookie", .requestCookie),
    ]

    /// Those that leave RFC 9111.
    public static let outsideTheRFC: PolicyOverrides = [
        .noStore, .isPrivate, .noCache, .mustRevalidate,
    ]

    /// Their names.
    public var names: [String] { Self.named.filter { contains($0.override) }.map(\.name) }
}
