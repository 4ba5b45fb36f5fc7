/// Why received bytes are refused: one case per reason; the parsers never guess.
///
/// The same cases serve both sides: a malformed request is answered with ``status``; a malformed
/// response is the upstream's fault and becomes 502 (``status(from:)``). After any of them the
/// connection cannot be used further, because where the next message begins is unknown.
public enum WireError: UInt8, Error, Sendable, CaseIterable {
    // The request line (RFC 9112 §3).
    case malformedRequestLine
    case bareCarriageReturn
    case bareLineFeed
    case methodTooLong
    case malformedVersion
    case unsupportedVersion
    // The request target (RFC 9112 §3.2).
    case targetTooLong
    case badTargetByte
    case fragmentInTarget
    case malformedTarget
    case targetFormForbidden
    case unsupportedScheme
    case userinfoInTarget
    case malformedAuthority
    // Host (RFC 9112 §3.2).
    case hostMissing
    case hostRepeated
    case malformedHost
    // Head and fields (RFC 9112 §5).
    case headTooLarge
    case tooManyFields
    case whitespaceBeforeFirstField
    case obsoleteLineFolding
    case emptyFieldName
    case spaceBeforeColon
    case missingColon
    case badFieldNameByte
    case disguisedFieldName
    case badFieldValueByte
    case truncatedHead
    // Framing (RFC 9112 §6).
    case malformedContentLength
    case repeatedContentLength
    case contentLengthTooLarge
    case contentLengthWithTransferEncoding
    case malformedTransferEncoding
    case unknownTransferCoding
    case chunkedNotFinal
    case repeatedChunked
    case transferEncodingInHTTP10
    case contentInConnect
    case contentInTrace
    // Connection, Max-Forwards and expectations (RFC 9110 §7.6.1, §7.6.2, §10.1.1).
    case malformedConnection
    case tooManyConnectionOptions
    case malformedMaxForwards
    case repeatedMaxForwards
    case unknownExpectation
    // Responses only (RFC 9112 §4).
    case malformedStatusLine
    case mixedLineEnds
    case unexpectedSwitch
    case failedSwitch
    case contentForbidden
    // Bodies (RFC 9112 §7.1).
    case malformedChunkSize
    case chunkTooLarge
    case malformedChunkExtension
    case chunkExtensionsTooLarge
    case unterminatedChunk
    case trailersTooLarge
    case tooManyTrailers
    case truncatedBody

    /// The peer whose bytes were refused.
    public enum Peer: Sendable {
        case client, upstream
    }

    /// The status to answer with when the bytes came from `peer`: 502 for an upstream.
    public func status(from peer: Peer) -> UInt16 {
        switch peer {
        case .client: status
        case .upstream: 502
        }
    }
}

extension WireError {
    /// The status that answers a request refused for this reason.
    public var status: UInt16 {
        switch self {
        // Well-formed, but its content or framing is larger than can be accepted (RFC 9110
        // §15.5.14).
        case .contentLengthTooLarge, .chunkTooLarge, .chunkExtensionsTooLarge: 413
        case .targetTooLong: 414
        case .unknownExpectation: 417
        case .headTooLarge, .tooManyFields, .trailersTooLarge, .tooManyTrailers: 431
        case .methodTooLong, .unknownTransferCoding: 501
        case .unsupportedVersion: 505
        case .malformedRequestLine, .bareCarriageReturn, .bareLineFeed, .malformedVersion,
            .badTargetByte, .fragmentInTarget, .malformedTarget, .targetFormForbidden,
            .unsupportedScheme, .userinfoInTarget, .malformedAuthority, .hostMissing,
            .hostRepeated, .malformedHost, .whitespaceBeforeFirstField, .obsoleteLineFolding,
            .emptyFieldName, .spaceBeforeColon, .missingColon, .badFieldNameByte,
            .disguisedFieldName, .badFieldValueByte, .truncatedHead, .malformedContentLength,
            .repeatedContentLength,
            .contentLengthWithTransferEncoding, .malformedTransferEncoding, .chunkedNotFinal,
            .repeatedChunked,
            .transferEncodingInHTTP10, .contentInConnect, .contentInTrace, .malformedConnection,
            .tooManyConnectionOptions, .malformedMaxForwards, .repeatedMaxForwards,
            .malformedStatusLine, .mixedLineEnds, .unexpectedSwitch, .failedSwitch,
            .contentForbidden, .malformedChunkSize, .malformedChunkExtension,
            .unterminatedChunk, .truncatedBody:
            400
        }
    }

    /// The reason as a token, for logs, metrics and error bodies.
    public var reason: StaticString {
        switch self {
        case .malformedRequestLine: "malformed-request-line"
        case .bareCarriageReturn: "bare-carriage-return"
        case .bareLineFeed: "bare-line-feed"
        case .methodTooLong: "method-too-long"
        case .malformedVersion: "malformed-version"
        case .unsupportedVersion: "unsupported-version"
        case .targetTooLong: "target-too-long"
        case .badTargetByte: "bad-target-byte"
        case .fragmentInTarget: "fragment-in-target"
        case .malformedTarget: "malformed-target"
        case .targetFormForbidden: "target-form-forbidden"
        case .unsupportedScheme: "unsupported-scheme"
        case .userinfoInTarget: "userinfo-in-target"
        case .malformedAuthority: "malformed-authority"
        case .hostMissing: "host-missing"
        case .hostRepeated: "host-repeated"
        case .malformedHost: "malformed-host"
        case .headTooLarge: "head-too-large"
        case .tooManyFields: "too-many-fields"
        case .whitespaceBeforeFirstField: "whitespace-before-first-field"
        case .obsoleteLineFolding: "obsolete-line-folding"
        case .emptyFieldName: "empty-field-name"
        case .spaceBeforeColon: "space-before-colon"
        case .missingColon: "missing-colon"
        case .badFieldNameByte: "bad-field-name-byte"
        case .disguisedFieldName: "disguised-field-name"
        case .badFieldValueByte: "bad-field-value-byte"
        case .truncatedHead: "truncated-head"
        case .malformedContentLength: "malformed-content-length"
        case .repeatedContentLength: "repeated-content-length"
        case .contentLengthTooLarge: "content-length-too-large"
        case .contentLengthWithTransferEncoding: "content-length-with-transfer-encoding"
        case .malformedTransferEncoding: "malformed-transfer-encoding"
        case .unknownTransferCoding: "unknown-transfer-coding"
        case .chunkedNotFinal: "chunked-not-final"
        case .repeatedChunked: "repeated-chunked"
        case .transferEncodingInHTTP10: "transfer-encoding-in-http-1.0"
        case .contentInConnect: "content-in-connect"
        case .contentInTrace: "content-in-trace"
        case .malformedConnection: "malformed-connection"
        case .tooManyConnectionOptions: "too-many-connection-options"
        case .malformedMaxForwards: "malformed-max-forwards"
        case .repeatedMaxForwards: "repeated-max-forwards"
        case .unknownExpectation: "unknown-expectation"
        case .malformedStatusLine: "malformed-status-line"
        case .mixedLineEnds: "mixed-line-ends"
        case .unexpectedSwitch: "unexpected-switch"
        case .failedSwitch: "failed-switch"
        case .contentForbidden: "content-forbidden"
        case .malformedChunkSize: "malformed-chunk-size"
        case .chunkTooLarge: "chunk-too-large"
        case .malformedChunkExtension: "malformed-chunk-extension"
        case .chunkExtensionsTooLarge: "chunk-extensions-too-large"
        case .unterminatedChunk: "unterminated-chunk"
        case .trailersTooLarge: "trailers-too-large"
        case .tooManyTrailers: "too-many-trailers"
        case .truncatedBody: "truncated-body"
        }
    }

    /// The reason as a sentence without full stop.
    public var explanation: StaticString {
        switch self {
        case .malformedRequestLine:
            "the request line is not a method, a target and a version with one space between them"
        case .bareCarriageReturn: "a carriage return is not followed by a line feed"
        case .bareLineFeed: "a line feed is not preceded by a carriage return"
        case .methodTooLong: "the method is longer than any known method"
        case .malformedVersion: "the version is not HTTP/ followed by two digits separated by a dot"
        case .unsupportedVersion: "the version is neither HTTP/1.0 nor HTTP/1.1"
        case .targetTooLong: "the request target is longer than the limit"
        case .badTargetByte: "the request target contains a control character or a non-ASCII byte"
        case .fragmentInTarget: "the request target contains a fragment"
        case .malformedTarget:
            "the request target is not in origin, absolute, authority or asterisk form"
        case .targetFormForbidden: "the request target's form is not allowed with the method"
        case .unsupportedScheme: "the request target's scheme is neither http nor https"
        case .userinfoInTarget: "the request target contains user information"
        case .malformedAuthority: "the host or port of the request target is malformed"
        case .hostMissing: "an HTTP/1.1 request has no Host field"
        case .hostRepeated: "there are several Host fields"
        case .malformedHost: "the Host field's value is not a host with an optional port"
        case .headTooLarge: "the head is larger than the limit"
        case .tooManyFields: "the head has more fields than the limit"
        case .whitespaceBeforeFirstField: "the line after the start line begins with whitespace"
        case .obsoleteLineFolding: "a field line begins with whitespace"
        case .emptyFieldName: "a field line begins with a colon"
        case .spaceBeforeColon: "there is whitespace between a field's name and its colon"
        case .missingColon: "a field line has no colon"
        case .badFieldNameByte: "a field name contains a byte that is not allowed in a token"
        case .disguisedFieldName:
            "a field name is that of a framing or hop-by-hop field with an underscore for a hyphen"
        case .badFieldValueByte: "a field value contains a control character"
        case .truncatedHead: "the connection ended within a head"
        case .malformedContentLength: "Content-Length is not a decimal number"
        case .repeatedContentLength: "there are several Content-Length values"
        case .contentLengthTooLarge: "Content-Length exceeds 2^63 - 1"
        case .contentLengthWithTransferEncoding:
            "there are both Content-Length and Transfer-Encoding"
        case .malformedTransferEncoding: "Transfer-Encoding is not a list of codings"
        case .unknownTransferCoding: "a transfer coding is unknown"
        case .chunkedNotFinal: "chunked is not the final transfer coding"
        case .repeatedChunked: "chunked is applied more than once"
        case .transferEncodingInHTTP10: "an HTTP/1.0 message has Transfer-Encoding"
        case .contentInConnect: "a CONNECT request announces content"
        case .contentInTrace: "a TRACE request announces content"
        case .malformedConnection: "Connection is not a list of tokens"
        case .tooManyConnectionOptions: "Connection has more options than the limit"
        case .malformedMaxForwards: "Max-Forwards is not a decimal number"
        case .repeatedMaxForwards: "there are several Max-Forwards fields"
        case .unknownExpectation: "the expectation is not 100-continue"
        case .malformedStatusLine:
            "the status line is not a version, a space, three digits, a space and a reason"
        case .mixedLineEnds: "some lines of a head end in a bare line feed and others do not"
        case .unexpectedSwitch: "a 101 response to a request that did not ask for an upgrade"
        case .failedSwitch:
            "a request for another protocol is neither refused nor answered as that protocol says"
        case .contentForbidden: "a response announces content, but its status does not allow any"
        case .malformedChunkSize:
            "a chunk's size is not a hexadecimal number at the start of its line"
        case .chunkTooLarge: "a chunk's size exceeds 2^63 - 1 or has more than 16 digits"
        case .malformedChunkExtension:
            "a chunk extension is not a semicolon and a token, with an optional = and value"
        case .chunkExtensionsTooLarge: "the chunk extensions of a message are larger than the limit"
        case .unterminatedChunk: "a chunk's data is not followed by CRLF"
        case .trailersTooLarge: "the trailer section is larger than the limit"
        case .tooManyTrailers: "the trailer section has more fields than the limit"
        case .truncatedBody: "the connection ended within a body"
        }
    }
}
