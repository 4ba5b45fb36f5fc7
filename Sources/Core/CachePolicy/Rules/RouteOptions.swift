import HTTPCore

/// What a route says about the cache beyond RFC 9111. Whatever is `nil` or empty changes nothing.
public struct RouteOptions: Sendable, Equatable {
    /// What is said about freshness.
    public var freshness = FreshnessRules()
    /// Response fields, in lower case, that are meant for this cache in place of Cache-Control (RFC
    /// 9213): the first one that a response has counts.
    public var targetedFields: [[UInt8]] = []
    /// How long after it has become stale a response may be served in place of a failure if neither
    /// side says so, in seconds (RFC 5861 §4).
    public var staleIfErrorSeconds: Int64 = 0
    /// Request fields, in lower case, that do not count although Vary nominates them.
    public var ignoredFields: [[UInt8]] = []
    /// The fields that are compared by their meaning.
    public var meanings: FieldMeanings = []
    /// Request fields, in lower case, that the gateway itself writes for each client: a response
    /// that varies by one of them cannot be matched against what the client sent, and is not
    /// stored.
    public var gatewayFields: [[UInt8]] = []
    /// The media types whose content is compressed for clients that accept that; `nil` for none.
    public var compressedTypes: CompressedTypes?
    /// Whether any stored response is used, however old, because the server is not asked.
    public var isOffline = false

    /// Creates options that say nothing.
    public init() {}

    /// The requirements that do not count.
    var overrides: PolicyOverrides { freshness.overrides ?? [] }
}

/// The options of a route that has any, apart from those that every request needs: then a route
/// that has none costs one comparison.
final class RouteOptionsBox: Sendable {
    let options: RouteOptions
    /// Whether Cache-Control alone may keep a response out, as without rules.
    private let heedsCacheControl: Bool
    private let targetedIDs: FieldIDSet
    private let targetedNames: FieldNameSketch

    init(_ options: RouteOptions) {
        self.options = options
        heedsCacheControl = options.overrides.isDisjoint(with: [.noStore, .isPrivate])
        let fields = options.targetedFields.map { ($0, FieldID(lowercaseName: $0)) }
        targetedIDs = FieldIDSet(fields.map(\.1).filter { $0 != .other })
        targetedNames = FieldNameSketch(fields.filter { $0.1 == .other }.map(\.0))
    }

    /// Whether a response that Cache-Control keeps out may be stored nevertheless: that does not
    /// count on the route, or another field may count in its place.
    func mayStoreDespiteCacheControl(_ fields: FieldSection) -> Bool {
        !heedsCacheControl || mayBeTargeted(fields)
    }

    /// Whether a response may have a field that is meant for this cache: two operations.
    func mayBeTargeted(_ fields: FieldSection) -> Bool {
        fields.present.intersects(targetedIDs) || fields.unknownNames.intersects(targetedNames)
    }
}

extension PolicyOptions {
    /// What the route says beyond RFC 9111.
    public var route: RouteOptions {
        get { box?.options ?? RouteOptions() }
        set { box = newValue == RouteOptions() ? nil : RouteOptionsBox(newValue) }
    }

    /// The field of RFC 9213 for caches in front of an origin, in lower case.
    public static let cdnCacheControl = Array("cdn-cache-control".utf8)

    /// Whether the key has a request field, in lower case, whatever the response's Vary.
    func isKeyed(by field: StaticString) -> Bool {
        nominatedFields.contains { $0.span.equals(field) }
    }

    /// Compares what they say.
    public static func == (left: PolicyOptions, right: PolicyOptions) -> Bool {
        left.isShared == right.isShared && left.heuristicPercent == right.heuristicPercent
            && left.heuristicMaximumSeconds == right.heuristicMaximumSeconds
            && left.heuristicForQueries == right.heuristicForQueries
            && left.setCookie == right.setCookie
            && left.trustsLastModified == right.trustsLastModified
            && left.maximumObjectBytes == right.maximumObjectBytes
            && left.maximumVaryNames == right.maximumVaryNames
            && left.maximumVaryKeyBytes == right.maximumVaryKeyBytes
            && left.nominatedFields == right.nominatedFields
            && left.staleWhenUnreachableSeconds == right.staleWhenUnreachableSeconds
            && left.route == right.route
    }
}
