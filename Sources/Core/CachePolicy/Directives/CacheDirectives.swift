import HTTPCore

/// The Cache-Control directives of one message (RFC 9111 §5.2), with the extensions of RFC 5861 and
/// RFC 8246. The same parser serves requests and responses; each side uses the directives that it
/// defines.
///
/// All field lines form one list. If a directive is given twice with different arguments, the more
/// restrictive one counts (§4.2.1 allows a cache to use the first or to treat the response as
/// stale; the smallest lifetime is safe in both respects). A `max-age` or `s-maxage` whose argument
/// is not a number is 0: stale (§4.2.1).
public struct CacheDirectives: Sendable, Equatable {
    /// Directives without arguments, and properties of the field.
    public struct Flags: OptionSet, Sendable {
        /// One bit for each flag.
        public let rawValue: UInt16
        /// Creates a set from its bits.
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// `no-store` (§5.2.1.5, §5.2.2.5).
        public static let noStore = Flags(rawValue: 1 << 0)
        /// `no-cache`, unqualified (§5.2.1.4, §5.2.2.4).
        public static let noCache = Flags(rawValue: 1 << 1)
        /// `private`, unqualified (§5.2.2.7).
        public static let isPrivate = Flags(rawValue: 1 << 2)
        /// `public` (§5.2.2.9).
        public static let isPublic = Flags(rawValue: 1 << 3)
        /// `must-revalidate` (§5.2.2.2).
        public static let mustRevalidate = Flags(rawValue: 1 << 4)
        /// `proxy-revalidate` (§5.2.2.8).
        public static let proxyRevalidate = Flags(rawValue: 1 << 5)
        /// `must-understand` (§5.2.2.3).
        public static let mustUnderstand = Flags(rawValue: 1 << 6)
        /// `no-transform` (§5.2.1.6, §5.2.2.6).
        public static let noTransform = Flags(rawValue: 1 << 7)
        /// `only-if-cached` (§5.2.1.7).
        public static let onlyIfCached = Flags(rawValue: 1 << 8)
        /// RFC 8246.
        public static let immutable = Flags(rawValue: 1 << 9)
        /// Part of the field does not follow the grammar, so an intended directive may have been
        /// missed.
        public static let malformed = Flags(rawValue: 1 << 10)
        /// `no-cache="field"`: of a response, only these fields need validation
        /// (`QualifiedFields`).
        public static let noCacheFields = Flags(rawValue: 1 << 11)
        /// `private="field"`: only these fields are not for a shared cache.
        public static let privateFields = Flags(rawValue: 1 << 12)
    }

    /// The largest delta-seconds; greater values are reduced to it (§1.2.2).
    public static let maximumSeconds: Int64 = 1 << 31

    /// Directives that are either present or absent.
    public var flags: Flags = []
    /// `max-age`, in seconds.
    public var maxAge: Int64?
    /// `s-maxage`, in seconds.
    public var sharedMaxAge: Int64?
    /// `max-stale`, in seconds; `maximumSeconds` if it has no argument.
    public var maxStale: Int64?
    /// `min-fresh`, in seconds.
    public var minFresh: Int64?
    /// `stale-if-error` (RFC 5861 §4), in seconds.
    public var staleIfError: Int64?
    /// `stale-while-revalidate` (RFC 5861 §3), in seconds.
    public var staleWhileRevalidate: Int64?
    /// How many fields are named by qualified directives.
    private var qualifiedFields = 0

    /// Creates an empty set of directives.
    public init() {}

    /// The directives of a request: those of all Cache-Control lines or, if there is no such line,
    /// `no-cache` if Pragma contains it (§5.4).
    ///
    /// Reads nothing if neither field is present.
    public init(request fields: FieldSection, in bytes: Span<UInt8>) {
        if fields.contains(.cacheControl) {
            addLines(of: fields, in: bytes)
            // A request has no fields that it could be about.
            if flags.contains(.noCacheFields) { flags.insert(.noCache) }
        } else if fields.contains(.pragma) {
            var lines = FieldValueIterator(.pragma)
            while let value = lines.next(in: fields) {
                if Self.hasNoCache(value, in: bytes) { flags.insert(.noCache) }
            }
        }
    }

    /// The directives of a response: those of all Cache-Control lines.
    public init(response fields: FieldSection, in bytes: Span<UInt8>) {
        if fields.contains(.cacheControl) { addLines(of: fields, in: bytes) }
    }

    private mutating func addLines(of fields: FieldSection, in bytes: Span<UInt8>) {
        var lines = FieldValueIterator(.cacheControl)
        while let value = lines.next(in: fields) { add(value, in: bytes) }
    }

    /// Whether a Pragma field's value contains the directive `no-cache`.
    static func hasNoCache(_ value: ByteRange, in bytes: Span<UInt8>) -> Bool {
        var pragma = CacheDirectives()
        pragma.add(value, in: bytes)
        return !pragma.flags.isDisjoint(with: [.noCache, .noCacheFields])
    }

    /// Adds the directives of one Cache-Control line.
    public mutating func add(_ value: ByteRange, in bytes: Span<UInt8>) {
        var scanner = DirectiveScanner(value)
        while let directive = scanner.next(in: bytes) {
            if directive.isMalformed { flags.insert(.malformed) }
            apply(directive, in: bytes)
        }
    }

    private mutating func apply(_ directive: Directive, in bytes: Span<UInt8>) {
        let name = directive.name
        func named(_ text: StaticString) -> Bool { bytes.holds(lowercase: text, at: name) }
        switch name.count {
        case 6 where named("public"):
            // Directives that permit something count only in their exact form, those that forbid
            // something in any form.
            if !directive.isMalformed, directive.argument == nil { flags.insert(.isPublic) }
        case 7 where named("private"): forbid(.isPrivate, .privateFields, directive, in: bytes)
        case 7 where named("max-age"): Self.lower(&maxAge, directive.seconds(in: bytes) ?? 0)
        case 8 where named("no-cache"): forbid(.noCache, .noCacheFields, directive, in: bytes)
        case 8 where named("no-store"): flags.insert(.noStore)
        case 8 where named("s-maxage"):
            Self.lower(&sharedMaxAge, directive.seconds(in: bytes) ?? 0)
        case 9 where named("max-stale"):
            let any = directive.argument == nil && !directive.isMalformed
            Self.lower(&maxStale, any ? Self.maximumSeconds : directive.seconds(in: bytes) ?? 0)
        case 9 where named("min-fresh"):
            let seconds = directive.seconds(in: bytes) ?? Self.maximumSeconds
            minFresh = max(minFresh ?? 0, seconds)
        case 9 where named("immutable"): flags.insert(.immutable)
        case 12 where named("no-transform"): flags.insert(.noTransform)
        case 14 where named("only-if-cached"): flags.insert(.onlyIfCached)
        case 14 where named("stale-if-error"):
            Self.lower(&staleIfError, directive.seconds(in: bytes) ?? 0)
        case 15 where named("must-revalidate"): flags.insert(.mustRevalidate)
        case 15 where named("must-understand"):
            if !directive.isMalformed { flags.insert(.mustUnderstand) }
        case 16 where named("proxy-revalidate"): flags.insert(.proxyRevalidate)
        case 22 where named("stale-while-revalidate"):
            Self.lower(&staleWhileRevalidate, directive.seconds(in: bytes) ?? 0)
        default: break
        }
    }

    /// Takes a directive that forbids something about the whole response, or about the fields that
    /// it names.
    private mutating func forbid(
        _ whole: Flags, _ fields: Flags, _ directive: Directive, in bytes: Span<UInt8>
    ) {
        guard !directive.isMalformed, let argument = directive.argument,
            let count = QualifiedFields.count(in: argument, of: bytes),
            qualifiedFields + count <= QualifiedFields.maximumCount
        else {
            flags.insert(whole)
            return
        }
        qualifiedFields += count
        flags.insert(fields)
    }

    private static func lower(_ value: inout Int64?, _ seconds: Int64) {
        value = min(value ?? maximumSeconds, seconds)
    }

    /// Removes what a request says that wants a new response.
    mutating func dropReload() {
        flags.remove(.noCache)
        maxAge = nil
    }

    /// Removes what applies only to shared caches. For a private cache `private` means what
    /// `public` means for any: that the response may be stored whatever its status (RFC 9111 §3).
    mutating func readAsPrivateCache() {
        sharedMaxAge = nil
        flags.remove(.proxyRevalidate)
        if !flags.isDisjoint(with: [.isPrivate, .privateFields]) { flags.insert(.isPublic) }
        flags.subtract([.isPrivate, .privateFields])
    }

    /// Whether the response may answer requests with Authorization, and be stored as the response
    /// to one (RFC 9111 §3.5).
    var allowsSharingAuthorized: Bool {
        sharedMaxAge != nil || !flags.isDisjoint(with: [.isPublic, .mustRevalidate])
    }

    /// Whether the response must never be served stale: `must-revalidate`, `proxy-revalidate`
    /// (§5.2.2.8), and `s-maxage`, which implies it (§5.2.2.10).
    var forbidsStale: Bool {
        sharedMaxAge != nil || !flags.isDisjoint(with: [.mustRevalidate, .proxyRevalidate])
    }
}
