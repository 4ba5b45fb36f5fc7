import HTTPCore

/// A request to the admin listener, reduced to what the response depends on.
package struct AdminRequest: Sendable {
    /// The method.
    package var method: Method
    /// The target's path with its query, as it was sent.
    package var target: String
    /// The value of `Accept`; `nil` if there is none. Several fields are joined with commas.
    package var accept: String?
    /// The value of `Accept-Encoding`; `nil` if there is none. Several fields are joined with
    /// commas.
    package var acceptEncoding: String?
    /// The value of `Authorization`; `nil` if there is none.
    package var authorization: String?
    /// The value of `Content-Type`; `nil` if there is none.
    package var contentType: String?
    /// The bytes of content that it announces; `nil` if it has none, `.max` if it does not say how
    /// many.
    package var contentBytes: UInt64?
    /// The content, once it has been collected; `nil` before that.
    package var content: [UInt8]?
    /// The value of `Origin`; `nil` if there is none.
    package var origin: String?
    /// The value of `Sec-Fetch-Site`; `nil` if there is none.
    package var fetchSite: String?
    /// The value of `Last-Event-ID`; `nil` if there is none.
    package var lastEventID: String?
    /// The value of `Host`.
    package var host = ""
    /// Whether its host is not one of the administrative address's own.
    package var isMisdirected: Bool
    /// Who may read which page.
    package var access: AdminAccess
    /// Whether the configuration allows recordings with the values of secret fields.
    package var mayRecordSecrets = false
    /// The content of the pages for which ``AdminSetup/isShown(at:)`` is true; `nil` for the
    /// others.
    package var setup: AdminSetup?

    /// Creates a request from its parts.
    package init(
        method: Method, target: String, accept: String? = nil,
        acceptEncoding: String? = nil, authorization: String? = nil,
        isMisdirected: Bool = false, access: AdminAccess = .open, setup: AdminSetup? = nil
    ) {
        self.method = method
        self.target = target
        self.accept = accept
        self.acceptEncoding = acceptEncoding
        self.authorization = authorization
        self.isMisdirected = isMisdirected
        self.access = access
        self.setup = setup
    }

    /// The path without the query.
    package var path: Substring {
        target.prefix { $0 != "?" }
    }

    /// Whether a page of an origin is one of this address itself, by the name that was asked for.
    func isSameOrigin(_ origin: String) -> Bool {
        let host = host.lowercasedASCII
        return !host.isEmpty
            && (origin.lowercasedASCII == "http://" + host
                || origin.lowercasedASCII == "https://" + host)
    }
}

/// A response of the admin listener. The gateway adds `Date`, `Content-Length` and the connection's
/// fields.
package struct AdminResponse: Sendable, Equatable {
    /// A response field.
    package struct Field: Sendable, Equatable {
        /// The field's name.
        package var name: String
        /// The field's value.
        package var value: String

        /// Creates a field with this name and value.
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The status code.
    package var status: UInt16
    /// The value of `Content-Type`.
    package var contentType: StaticString
    /// Additional fields, in the order in which they are sent.
    package var fields: [Field]
    /// The content; `Content-Length` is its length, also for HEAD.
    package var body: [UInt8]
    /// Whether the body is sent: not in response to HEAD.
    package var sendsBody: Bool

    /// Creates a response from its parts.
    package init(
        status: UInt16, contentType: StaticString, fields: [Field] = [], body: [UInt8],
        sendsBody: Bool = true
    ) {
        self.status = status
        self.contentType = contentType
        self.fields = fields
        self.body = body
        self.sendsBody = sendsBody
    }

    /// Compares all parts; content types by their text.
    package static func == (one: AdminResponse, other: AdminResponse) -> Bool {
        one.status == other.status && one.fields == other.fields && one.body == other.body
            && one.sendsBody == other.sendsBody
            && String(describing: one.contentType) == String(describing: other.contentType)
    }
}
