/// What a line of the access log may tell, as JSON.
package enum AccessLogField: Sendable, Hashable {
    /// What is known of an exchange. The names are those of the members, in the order in which a
    /// line has them unless others are chosen.
    package enum Known: String, Sendable, CaseIterable {
        case time
        case id
        case client
        case listener
        case host
        case method
        case target
        case version
        case status
        case duration = "duration_us"
        case queue = "queue_us"
        case dns = "dns_us"
        case connect = "connect_us"
        case tls = "tls_us"
        case firstByte = "first_byte_us"
        case body = "body_us"
        case requestBytes = "request_bytes"
        case responseBytes = "response_bytes"
        case cache
        case forwarded
        case notStored = "not_stored"
        case trace
        case intercepted
        case passed
        case inspected
        case changed
        case user
        case tunnel
        case authority
        case original
        case clientTLS = "client_tls"
        case clientCipher = "client_cipher"
        case clientSubject = "client_subject"
        case parent
        case upstream
        case reused
        case upstreamVersion = "upstream_version"
        case upstreamTLS = "upstream_tls"
        case reason
        case rule
        case reported
        case userAgent = "user_agent"
        case referer
        case sample
    }

    case known(Known)
    /// A field of the request's head, as the client sent it, by its name in lower case.
    case request(String)
    /// A field of the response's head, as the client got it, likewise.
    case response(String)

    /// The maximum number of fields of heads that are chosen: each of them is looked for in each
    /// head.
    package static let maximumOfHeads = 32
    /// What precedes the names of fields of heads.
    package static let requestPrefix = "request."
    package static let responsePrefix = "response."

    /// The name in configurations and in lines.
    package var name: String {
        switch self {
        case .known(let field): field.rawValue
        case .request(let name): Self.requestPrefix + name
        case .response(let name): Self.responsePrefix + name
        }
    }
}
