/// How requests to the hosts of an entry are changed (`hosts[].request`).
package struct RequestRules: Sendable, Equatable {
    package var headers = HeaderRules()
    /// Whether X-Forwarded-User says who is asking, and never what the client says.
    package var forwardsUser = false
    /// The credentials for requests that have none; `nil` if none are added.
    package var authorization: RequestAuthorization?
    /// Path prefixes and their replacements; the first that matches is replaced.
    package var pathPrefixes: [PrefixReplacement] = []
    package var query = QueryRules()
    package var cachePolicy = RequestCachePolicy.useProtocol
    /// Where parameters are sent.
    package var parameters = ParameterPlacement.keep
    /// The translation of the content; `nil` if it is sent unchanged.
    package var body: RequestBodyRules?

    /// Creates rules that change nothing.
    package init() {}
}

/// The name and value of a header field or a parameter.
package struct NamedValue: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// How the header fields of a message are changed. The steps are performed in the order of the
/// properties; names are compared case-insensitively.
package struct HeaderRules: Sendable, Equatable {
    /// Fields to remove.
    package var remove: [String] = []
    /// Fields to rename (to the value); their lines stay in place.
    package var rename: [NamedValue] = []
    /// Fields whose lines are replaced by one.
    package var set: [NamedValue] = []
    /// Lines to add.
    package var add: [NamedValue] = []
    /// Fields to add to messages that do not have them.
    package var defaults: [NamedValue] = []

    package init() {}
}

/// A path prefix of whole segments: `/a` matches `/a` and `/a/b`, but not `/ab`.
package struct PrefixReplacement: Sendable, Equatable {
    /// Begins with `/`.
    package var prefix: String
    /// Begins with `/`.
    package var replacement: String

    package init(_ prefix: String, _ replacement: String) {
        self.prefix = prefix
        self.replacement = replacement
    }
}

/// How a request's query is changed, parameter by parameter; names and values are not
/// percent-encoded. The steps are performed in the order of the properties.
package struct QueryRules: Sendable, Equatable {
    package var remove: [String] = []
    package var rename: [NamedValue] = []
    package var set: [NamedValue] = []
    package var add: [NamedValue] = []
    package var defaults: [NamedValue] = []

    package init() {}
}

/// Credentials that the gateway supplies for its clients.
package struct RequestAuthorization: Sendable, Equatable {
    /// The value of Authorization, computed when the configuration was loaded.
    package var fieldValue: SecretText
    /// The credentials as configured.
    package var scheme: Scheme
    /// Whether they may be sent without TLS.
    package var allowsClearText = false

    package enum Scheme: Sendable, Equatable {
        /// Basic (RFC 7617), with the user's name.
        case basic(user: String, SecretSource)
        /// Bearer (RFC 6750).
        case bearer(SecretSource)
    }

    package init(fieldValue: SecretText, scheme: Scheme) {
        self.fieldValue = fieldValue
        self.scheme = scheme
    }
}

/// Where a secret comes from.
package enum SecretSource: Sendable, Equatable {
    /// The absolute path of a file whose first line is the secret.
    case file(String)
    /// The name of an environment variable.
    case variable(String)
}

/// A text that is never shown in logs, on pages or in the effective configuration.
package struct SecretText: Sendable, Equatable, CustomStringConvertible {
    package let text: String

    package init(_ text: String) { self.text = text }

    package var description: String { "(secret)" }
}

/// Which responses the cache may use for requests, whatever the requests themselves ask for.
package enum RequestCachePolicy: String, Sendable, Equatable, CaseIterable {
    /// As RFC 9111 specifies.
    case useProtocol
    /// The origin is contacted each time.
    case reloadIgnoringCache
    /// The stored response, whatever its age; without one the origin is contacted.
    case returnCacheElseLoad
    /// The stored response, whatever its age; otherwise 504.
    case returnCacheDontLoad
}

/// Where the parameters of a forwarded request are sent.
package enum ParameterPlacement: String, Sendable, Equatable, CaseIterable {
    /// Where they were.
    case keep
    /// In the query for GET, HEAD and DELETE, in the content for other methods.
    case byMethod
}

/// The translation of requests' content.
package struct RequestBodyRules: Sendable, Equatable {
    package var from: BodyFormat
    package var to: BodyFormat
    /// The maximum size in bytes of content that is translated, before and after translation;
    /// anything larger is answered with 413.
    package var maximumBytes = 1 << 20
    /// How a request with `no-transform` (RFC 9111 §5.2.1.6) is handled.
    package var noTransform = NoTransformMode.pass
    /// How form names denote the elements of arrays, in content and in queries.
    package var arrays = FormArrays.brackets

    package init(from: BodyFormat, to: BodyFormat) {
        self.from = from
        self.to = to
    }
}

/// How form names denote the elements of an array.
package enum FormArrays: String, Sendable, Equatable, CaseIterable {
    /// `k[]`; `k[0]` is a member named `0`.
    case brackets
    /// `k[0]`, `k[1]` and so on.
    case indices
}

/// A format of content.
package enum BodyFormat: String, Sendable, Equatable, CaseIterable {
    case json
    /// `application/x-www-form-urlencoded`; only in requests.
    case form
    case plist
    case xml
    /// `multipart/form-data`; only as `from` in requests.
    case multipart
}

/// How content that its sender wants unchanged is handled.
package enum NoTransformMode: String, Sendable, Equatable, CaseIterable {
    /// It is passed on unchanged.
    case pass
    /// It is refused.
    case refuse
}
