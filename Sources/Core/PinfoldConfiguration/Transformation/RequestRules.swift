/// What is changed of the requests to the hosts of an entry (`hosts[].request`).
package struct RequestRules: Sendable, Equatable {
    package var headers = HeaderRules()
    /// The credentials of requests that bring none; nil: none are added.
    package var authorization: RequestAuthorization?
    /// Beginnings of paths and what takes their place; the first that fits is replaced.
    package var pathPrefixes: [PrefixReplacement] = []
    package var query = QueryRules()
    package var cachePolicy = RequestCachePolicy.useProtocol
    /// Where parameters stand.
    package var parameters = ParameterPlace.keep
    /// The translation of the content; nil: it is sent as it came.
    package var body: RequestBodyRules?

    /// Rules that change nothing.
    package init() {}
}

/// A name and a value, of a header field or a parameter.
package struct NamedValue: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// What is changed of the header fields of a request. Steps are taken in the order of the
/// properties; names are compared without regard to case.
package struct HeaderRules: Sendable, Equatable {
    /// Fields that are taken out.
    package var remove: [String] = []
    /// Fields that get another name (the value), their lines where they were.
    package var rename: [NamedValue] = []
    /// Fields whose lines are replaced by one.
    package var set: [NamedValue] = []
    /// Lines that are added.
    package var add: [NamedValue] = []
    /// Fields for requests that do not have them.
    package var defaults: [NamedValue] = []

    package init() {}
}

/// A beginning of paths: whole segments, so that `/a` fits `/a` and `/a/b`, not `/ab`.
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

/// What is changed of a request's query, parameter by parameter; names and values are without
/// percent-encoding. Steps are taken in the order of the properties.
package struct QueryRules: Sendable, Equatable {
    package var remove: [String] = []
    package var rename: [NamedValue] = []
    package var set: [NamedValue] = []
    package var add: [NamedValue] = []
    package var defaults: [NamedValue] = []

    package init() {}
}

/// Credentials that the gateway has in place of its clients.
package struct RequestAuthorization: Sendable, Equatable {
    /// The value of Authorization, made when the configuration was loaded.
    package var fieldValue: SecretText
    /// How it was written.
    package var scheme: Scheme
    /// Whether it may go out without TLS.
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

/// Where a secret is from.
package enum SecretSource: Sendable, Equatable {
    /// The absolute path of a file, whose first line it is.
    case file(String)
    /// The name of an environment variable.
    case variable(String)
}

/// A text that no log, page or effective configuration shows.
package struct SecretText: Sendable, Equatable, CustomStringConvertible {
    package let text: String

    package init(_ text: String) { self.text = text }

    package var description: String { "(secret)" }
}

/// Which responses the cache may give to requests, whatever these ask for themselves.
package enum RequestCachePolicy: String, Sendable, Equatable, CaseIterable {
    /// What RFC 9111 says.
    case useProtocol
    /// The origin is asked each time.
    case reloadIgnoringCache
    /// What is stored, whatever its age; else the origin is asked.
    case returnCacheElseLoad
    /// What is stored, whatever its age; else 504.
    case returnCacheDontLoad
}

/// Where the parameters of a request stand when it is sent on.
package enum ParameterPlace: String, Sendable, Equatable, CaseIterable {
    /// Where they are.
    case keep
    /// Those of GET, HEAD and DELETE in the query, those of other methods in the content.
    case byMethod
}

/// The translation of requests' content.
package struct RequestBodyRules: Sendable, Equatable {
    package var from: BodyFormat
    package var to: BodyFormat
    /// Bytes of content that are translated at most, of what came and of what is made of it; more
    /// is answered with 413.
    package var maximumBytes = 1 << 20
    /// What is done where the request says `no-transform` (RFC 9111, section 5.2.1.6).
    package var noTransform = NoTransformMode.pass
    /// How the names of forms say the elements of arrays, in content and in queries.
    package var arrays = FormArrays.brackets

    package init(from: BodyFormat, to: BodyFormat) {
        self.from = from
        self.to = to
    }
}

/// How the names of a form say the elements of an array.
package enum FormArrays: String, Sendable, Equatable, CaseIterable {
    /// `k[]`; `k[0]` is a member named `0`.
    case brackets
    /// `k[0]`, `k[1]` and so on.
    case indices
}

/// A format of content.
package enum BodyFormat: String, Sendable, Equatable, CaseIterable {
    case json
    /// `application/x-www-form-urlencoded`; of requests only.
    case form
    case plist
    case xml
    /// `multipart/form-data`; `from` in requests only.
    case multipart
}

/// What is done with content that its sender wants unchanged.
package enum NoTransformMode: String, Sendable, Equatable, CaseIterable {
    /// It is passed on as it is.
    case pass
    /// It is refused.
    case refuse
}
