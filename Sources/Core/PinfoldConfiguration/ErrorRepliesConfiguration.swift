/// How the gateway says that it did not serve a request.
package struct ErrorRepliesConfiguration: Sendable, Equatable {
    /// What a reply is written in.
    package enum Format: String, Sendable, Equatable, CaseIterable {
        /// What the client prefers according to its Accept: text unless it says otherwise.
        case negotiate
        case text
        case html
        case json
    }

    /// What replies are written in.
    package var format = Format.negotiate
    /// The page in place of the gateway's own, where HTML is written; `nil` for that.
    package var page: ErrorPage?

    /// Creates the defaults.
    package init() {}
}

/// A page that says that a request was not served, and why.
package typealias ErrorPage = PageTemplate<ErrorPageValue>

/// What a name in double braces stands for in it. Where there is no value, it is empty.
package enum ErrorPageValue: String, Sendable, Equatable, CaseIterable {
    /// The status, such as 502.
    case status
    /// Its words, such as Bad Gateway.
    case phrase
    /// The reason's token.
    case reason
    /// What was wrong, and what was expected where that helps, in a sentence.
    case message
    /// The host, and the port if there is one, as the client named it.
    case host
    /// The request's target, without userinfo.
    case url
    /// The client's address.
    case client
    /// The number under which the request is logged.
    case id
    /// When the reply was written: RFC 3339, UTC.
    case time
}
