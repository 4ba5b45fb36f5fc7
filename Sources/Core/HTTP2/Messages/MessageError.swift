/// Why the fields of a message are refused (RFC 9113 §8): one case per reason; nothing is guessed.
///
/// A message that is malformed is an error of its stream, of type PROTOCOL_ERROR (§8.1.1); a server
/// may answer with ``status`` before. One that is only too large is answered.
public enum MessageError: UInt8, Error, Sendable, CaseIterable {
    // Names and values (§8.2).
    case emptyFieldName
    case capitalInFieldName
    case badFieldNameByte
    case badFieldValueByte
    case whitespaceAroundValue
    case connectionField
    case forbiddenTE
    // Pseudo-fields (§8.3).
    case unknownPseudoField
    case misplacedPseudoField
    case repeatedPseudoField
    case latePseudoField
    case pseudoFieldInTrailers
    // Requests (§8.3.1, §8.5, RFC 8441 §4).
    case methodMissing
    case malformedMethod
    case methodTooLong
    case schemeMissing
    case unsupportedScheme
    case schemeMismatch
    case pathMissing
    case emptyPath
    case malformedPath
    case badPathByte
    case fragmentInPath
    case asteriskForbidden
    case targetTooLong
    case authorityMissing
    case emptyAuthority
    case userinfoInAuthority
    case malformedAuthority
    case hostRepeated
    case hostMismatch
    case pseudoFieldInConnect
    case protocolWithoutConnect
    case malformedProtocol
    case unsupportedProtocol
    // Responses (§8.3.2, §8.6, §8.1).
    case statusMissing
    case malformedStatus
    case switchingProtocols
    case interimEndsStream
    // Content (§8.1.1).
    case malformedContentLength
    case repeatedContentLength
    case contentLengthTooLarge
    case contentLengthWithoutContent
    // Trailers (§8.1, RFC 9110 §6.5.1).
    case forbiddenTrailer
    // Limits.
    case headTooLarge
    case tooManyFields
    case trailersTooLarge
    case tooManyTrailers
}

extension MessageError {
    /// The status that answers a request refused for this reason.
    public var status: UInt16 {
        switch self {
        case .contentLengthTooLarge: 413
        case .targetTooLong: 414
        case .headTooLarge, .tooManyFields, .trailersTooLarge, .tooManyTrailers: 431
        case .methodTooLong, .unsupportedProtocol: 501
        case .emptyFieldName, .capitalInFieldName, .badFieldNameByte, .badFieldValueByte,
            .whitespaceAroundValue, .connectionField, .forbiddenTE, .unknownPseudoField,
            .misplacedPseudoField, .repeatedPseudoField, .latePseudoField,
            .pseudoFieldInTrailers, .methodMissing, .malformedMethod, .schemeMissing,
            .unsupportedScheme, .schemeMismatch, .pathMissing, .emptyPath, .malformedPath,
            .badPathByte, .fragmentInPath, .asteriskForbidden, .authorityMissing,
            .emptyAuthority, .userinfoInAuthority, .malformedAuthority, .hostRepeated,
            .hostMismatch, .pseudoFieldInConnect, .protocolWithoutConnect, .malformedProtocol,
            .statusMissing, .malformedStatus, .switchingProtocols, .interimEndsStream,
            .malformedContentLength, .repeatedContentLength, .contentLengthWithoutContent,
            .forbiddenTrailer:
            400
        }
    }

    /// Whether the message breaks the rules, rather than a limit.
    public var isMalformed: Bool { status == 400 }

    /// The reason as a token, for logs, metrics and error bodies.
    public var reason: StaticString {
        switch self {
        case .emptyFieldName: "empty-field-name"
        case .capitalInFieldName: "capital-in-field-name"
        case .badFieldNameByte: "bad-field-name-byte"
        case .badFieldValueByte: "bad-field-value-byte"
        case .whitespaceAroundValue: "whitespace-around-value"
        case .connectionField: "connection-field"
        case .forbiddenTE: "forbidden-te"
        case .unknownPseudoField: "unknown-pseudo-field"
        case .misplacedPseudoField: "misplaced-pseudo-field"
        case .repeatedPseudoField: "repeated-pseudo-field"
        case .latePseudoField: "late-pseudo-field"
        case .pseudoFieldInTrailers: "pseudo-field-in-trailers"
        case .methodMissing: "method-missing"
        case .malformedMethod: "malformed-method"
        case .methodTooLong: "method-too-long"
        case .schemeMissing: "scheme-missing"
        case .unsupportedScheme: "unsupported-scheme"
        case .schemeMismatch: "scheme-mismatch"
        case .pathMissing: "path-missing"
        case .emptyPath: "empty-path"
        case .malformedPath: "malformed-path"
        case .badPathByte: "bad-path-byte"
        case .fragmentInPath: "fragment-in-path"
        case .asteriskForbidden: "asterisk-forbidden"
        case .targetTooLong: "target-too-long"
        case .authorityMissing: "authority-missing"
        case .emptyAuthority: "empty-authority"
        case .userinfoInAuthority: "userinfo-in-authority"
        case .malformedAuthority: "malformed-authority"
        case .hostRepeated: "host-repeated"
        case .hostMismatch: "host-mismatch"
        case .pseudoFieldInConnect: "pseudo-field-in-connect"
        case .protocolWithoutConnect: "protocol-without-connect"
        case .malformedProtocol: "malformed-protocol"
        case .unsupportedProtocol: "unsupported-protocol"
        case .statusMissing: "status-missing"
        case .malformedStatus: "malformed-status"
        case .switchingProtocols: "switching-protocols"
        case .interimEndsStream: "interim-ends-stream"
        case .malformedContentLength: "malformed-content-length"
        case .repeatedContentLength: "repeated-content-length"
        case .contentLengthTooLarge: "content-length-too-large"
        case .contentLengthWithoutContent: "content-length-without-content"
        case .forbiddenTrailer: "forbidden-trailer"
        case .headTooLarge: "head-too-large"
        case .tooManyFields: "too-many-fields"
        case .trailersTooLarge: "trailers-too-large"
        case .tooManyTrailers: "too-many-trailers"
        }
    }

    /// The reason as a sentence without full stop.
    public var explanation: StaticString {
        switch self {
        case .emptyFieldName: "a field name is empty"
        case .capitalInFieldName: "a field name contains a capital letter"
        case .badFieldNameByte: "a field name contains a byte that is not allowed in a token"
        case .badFieldValueByte: "a field value contains a control character"
        case .whitespaceAroundValue: "a field value begins or ends with whitespace"
        case .connectionField: "there is a field that belongs to one connection"
        case .forbiddenTE: "TE has another value than trailers, or is not in a request"
        case .unknownPseudoField: "there is an unknown pseudo-field"
        case .misplacedPseudoField:
            "there is a pseudo-field of responses in a request, or of requests in a response"
        case .repeatedPseudoField: "a pseudo-field occurs twice"
        case .latePseudoField: "a pseudo-field follows another field"
        case .pseudoFieldInTrailers: "there is a pseudo-field among the trailers"
        case .methodMissing: "there is no :method before the other fields"
        case .malformedMethod: ":method is not a token"
        case .methodTooLong: ":method is longer than any known method"
        case .schemeMissing: "there is no :scheme before the other fields"
        case .unsupportedScheme: ":scheme is neither http nor https"
        case .schemeMismatch: ":scheme is not that of the connection"
        case .pathMissing: "there is no :path before the other fields"
        case .emptyPath: ":path is empty"
        case .malformedPath: ":path does not begin with a slash"
        case .badPathByte: ":path contains a space, a control character or a non-ASCII byte"
        case .fragmentInPath: ":path contains a fragment"
        case .asteriskForbidden: ":path is * and :method is not OPTIONS"
        case .targetTooLong: ":path is longer than the limit"
        case .authorityMissing: "there is neither :authority nor Host"
        case .emptyAuthority: ":authority or Host is empty"
        case .userinfoInAuthority: ":authority or Host contains user information"
        case .malformedAuthority: ":authority or Host is not a host with an optional port"
        case .hostRepeated: "there are several Host fields"
        case .hostMismatch: ":authority and Host differ"
        case .pseudoFieldInConnect: "a CONNECT request has :scheme or :path, and no :protocol"
        case .protocolWithoutConnect: "there is :protocol, but :method is not CONNECT"
        case .malformedProtocol: ":protocol is not a token"
        case .unsupportedProtocol: ":protocol is none that can be passed on: HTTP and TLS never are"
        case .statusMissing: "there is no :status before the other fields"
        case .malformedStatus: ":status is not three digits"
        case .switchingProtocols: ":status is 101, which does not exist in HTTP/2"
        case .interimEndsStream: "an interim response ends its stream"
        case .malformedContentLength: "Content-Length is not a decimal number"
        case .repeatedContentLength: "there are several Content-Length fields"
        case .contentLengthTooLarge: "Content-Length exceeds 2^63 - 1"
        case .contentLengthWithoutContent:
            "Content-Length announces content, but the stream ends with the head"
        case .forbiddenTrailer: "a trailer is a field of framing or routing"
        case .headTooLarge: "the head is larger than the limit"
        case .tooManyFields: "the head has more fields than the limit"
        case .trailersTooLarge: "the trailer section is larger than the limit"
        case .tooManyTrailers: "the trailer section has more fields than the limit"
        }
    }
}
