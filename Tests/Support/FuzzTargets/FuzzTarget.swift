import Documents

/// A parser that is fuzzed, and what must hold for any bytes: that it ends, within its limits, with
/// a value or a typed error; that what was read is read the same after it has been written; that a
/// stream is read the same however it arrives (``Arrivals``); and that where the TLS library reads
/// the same bytes, it reads the same from them.
///
/// The same checks are run by libFuzzer (`deploy/fuzz`) and, over the seeds, by the ordinary tests.
package enum FuzzTarget: String, CaseIterable, Sendable {
    case json
    case xml
    case xmlPropertyList = "xml-property-list"
    case binaryPropertyList = "binary-property-list"
    case form
    case multipart
    case queryString = "query-string"
    case contentCoding = "content-coding"
    case jsonSchema = "json-schema"
    case requestHead = "request-head"
    case image
    case yaml
    case responseHead = "response-head"
    case chunked
    case clientHello = "client-hello"
    case serverFlight = "server-flight"
    case secondHello = "second-hello"
    case handshakeStream = "handshake-stream"
    case certificate
    case timestampList = "timestamp-list"
    case stapledResponse = "stapled-response"
    case revocationList = "revocation-list"
    case dnsMessage = "dns-message"
    case webSocket = "web-socket"
    case eventStream = "event-stream"
    case cookies
    case challenges
    case domainList = "domain-list"
    case credentialsFile = "credentials-file"
    case authorization
    case keyFile = "key-file"
    case signedToken = "signed-token"
    case namePattern = "name-pattern"
    case headerBlock = "header-block"
    case requestMessage = "request-message"
    case responseMessage = "response-message"
    case frames = "http2-frames"
    case proxyHeader = "proxy-header"
    case socks
    case opening
    case redisReplies = "redis-replies"
    case sharedRecord = "shared-record"

    /// Passes the bytes to the parser.
    ///
    /// - Returns: whether they were parsed, rather than refused with a parser error.
    /// - Throws: a ``FuzzCheckError`` if something that must hold does not.
    @discardableResult
    package func check(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        switch self {
        case .json: try checkJSON(bytes)
        case .xml: try checkXML(bytes)
        case .xmlPropertyList: try checkPropertyList(bytes, as: .xml)
        case .binaryPropertyList: try checkPropertyList(bytes, as: .binary)
        case .form: try checkForm(bytes)
        case .multipart: try checkMultipart(bytes)
        case .queryString: try checkQueryString(bytes)
        case .contentCoding: try checkCodings(bytes)
        case .jsonSchema: try checkSchema(bytes)
        case .requestHead: try checkHead(bytes)
        case .image: try checkImage(bytes)
        case .yaml: try checkYAML(bytes)
        case .responseHead: try checkResponseHead(bytes)
        case .chunked: try checkChunked(bytes)
        case .clientHello: try checkClientHello(bytes)
        case .serverFlight: try checkServerFlight(bytes)
        case .secondHello: try checkSecondHello(bytes)
        case .handshakeStream: try checkHandshakeStream(bytes)
        case .certificate: try checkCertificate(bytes)
        case .timestampList: try checkTimestampList(bytes)
        case .stapledResponse: try checkStapledResponse(bytes)
        case .revocationList: try checkRevocationList(bytes)
        case .dnsMessage: try checkDNSMessage(bytes)
        case .webSocket: try checkWebSocket(bytes)
        case .eventStream: try checkEventStream(bytes)
        case .cookies: try checkCookies(bytes)
        case .challenges: try checkChallenges(bytes)
        case .domainList: try checkDomainList(bytes)
        case .credentialsFile: try checkCredentialsFile(bytes)
        case .authorization: try checkAuthorization(bytes)
        case .keyFile: try checkKeyFile(bytes)
        case .signedToken: try checkSignedToken(bytes)
        case .namePattern: try checkNamePattern(bytes)
        case .headerBlock: try checkHeaderBlocks(bytes)
        case .requestMessage: try checkRequestMessage(bytes)
        case .responseMessage: try checkResponseMessage(bytes)
        case .frames: try checkFrames(bytes)
        case .proxyHeader: try checkProxyHeader(bytes)
        case .socks: try checkSOCKS(bytes)
        case .opening: try checkOpening(bytes)
        case .redisReplies: try checkRedisReplies(bytes)
        case .sharedRecord: try checkSharedRecord(bytes)
        }
    }
}

/// Something that must hold but does not.
package struct FuzzCheckError: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

extension DocumentLimits {
    /// Small, so that inputs of a few kilobytes reach them.
    static let fuzzing = DocumentLimits(
        bytes: 1 << 16, depth: 24, values: 1000, digits: 40, output: 1 << 17)

    /// For rereading what was written from a document within the limits.
    static let fuzzingAgain = DocumentLimits(
        bytes: 1 << 24, depth: 64, values: 1 << 20, digits: 400, output: 1 << 24)
}

extension DocumentValue {
    /// The nesting depth of arrays and dictionaries.
    var depth: Int {
        switch self {
        case .array(let values): 1 + (values.lazy.map(\.depth).max() ?? 0)
        case .dictionary(let members): 1 + (members.members.lazy.map(\.value.depth).max() ?? 0)
        default: 0
        }
    }

    /// The number of values in it, including itself but not keys.
    var count: Int {
        switch self {
        case .array(let values): values.reduce(1) { $0 + $1.count }
        case .dictionary(let members): members.members.reduce(1) { $0 + $1.value.count }
        default: 1
        }
    }

    var hasNull: Bool {
        switch self {
        case .null: true
        case .array(let values): values.contains(where: \.hasNull)
        case .dictionary(let members): members.members.contains(where: \.value.hasNull)
        default: false
        }
    }

    /// - Throws: if the value exceeds the limits of its reader.
    func checkLimits(_ limits: DocumentLimits = .fuzzing) throws(FuzzCheckError) {
        guard depth <= limits.depth else { throw FuzzCheckError("\(depth) levels were read") }
        guard count <= limits.values else { throw FuzzCheckError("\(count) values were read") }
    }
}
