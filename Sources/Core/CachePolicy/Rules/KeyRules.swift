/// What a route says about the key under which its responses are stored. The request that is sent
/// to the server stays as it is.
public struct KeyRules: Sendable, Equatable {
    /// Request fields, in lower case, whose values are part of the key in addition to what Vary
    /// nominates; `nil` where nothing is said.
    public var fields: [String]?
    /// Request fields, in lower case, that do not count although Vary nominates them: outside RFC
    /// 9111 (§4.1).
    public var ignoredFields: [String]?
    /// Request fields, in lower case, whose values are compared by their meaning: some of
    /// ``normalizable``.
    public var normalizedFields: [String]?
    /// The parameters of the query that do not count.
    public var ignoredParameters: [NamePattern]?
    /// The only parameters of the query that count.
    public var keptParameters: [NamePattern]?
    /// Whether the order of the query's parameters with different names does not count.
    public var sortsParameters: Bool?

    /// Creates rules that change nothing.
    public init() {}

    /// The most patterns of names in a list.
    public static let maximumPatterns = 64

    /// The fields that can be compared by their meaning, in lower case.
    public static let normalizable = ["accept-encoding", "accept-language"]

    /// Fields, in lower case, that must not be ignored: they say who is asking, or what else is
    /// sent to the one who asks alone.
    public static let neverIgnored = ["authorization", "cookie", "host", "range"]

    /// These rules, with those of `other` where they say nothing.
    public func over(_ other: KeyRules) -> KeyRules {
        var rules = self
        rules.fields = fields ?? other.fields
        rules.ignoredFields = ignoredFields ?? other.ignoredFields
        rules.normalizedFields = normalizedFields ?? other.normalizedFields
        rules.ignoredParameters = ignoredParameters ?? other.ignoredParameters
        rules.keptParameters = keptParameters ?? other.keptParameters
        rules.sortsParameters = sortsParameters ?? other.sortsParameters
        return rules
    }
}

/// Which requests of a route are neither answered from the cache nor have their responses stored,
/// in addition to those with one of `cache.bypassFields`.
public struct BypassConditions: Sendable, Equatable {
    /// Request fields, in lower case, one of which is enough; `nil` where nothing is said.
    public var fields: [String]?
    /// The names of cookies.
    public var cookies: [NamePattern]?
    /// The names of parameters of the query.
    public var parameters: [NamePattern]?

    /// Creates conditions that no request fulfils.
    public init() {}

    /// These conditions, with those of `other` where they say nothing.
    public func over(_ other: BypassConditions) -> BypassConditions {
        var conditions = self
        conditions.fields = fields ?? other.fields
        conditions.cookies = cookies ?? other.cookies
        conditions.parameters = parameters ?? other.parameters
        return conditions
    }
}
