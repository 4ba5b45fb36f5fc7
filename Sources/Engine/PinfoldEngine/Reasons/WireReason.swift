import HTTPCore

extension WireError {
    /// Whether messages from such a peer can have the error: a client sends requests, and a server
    /// responses.
    package func canOccur(from peer: Peer) -> Bool {
        switch self {
        case .malformedRequestLine, .methodTooLong, .targetTooLong, .badTargetByte,
            .fragmentInTarget, .malformedTarget, .targetFormForbidden, .unsupportedScheme,
            .userinfoInTarget, .malformedAuthority, .hostMissing, .hostRepeated, .malformedHost,
            .disguisedFieldName, .contentInConnect, .contentInTrace, .malformedMaxForwards,
            .repeatedMaxForwards, .unknownExpectation:
            peer == .client
        case .malformedStatusLine, .mixedLineEnds, .unexpectedSwitch, .failedSwitch,
            .contentForbidden:
            peer == .upstream
        case .bareCarriageReturn, .bareLineFeed, .malformedVersion, .unsupportedVersion,
            .headTooLarge, .tooManyFields, .whitespaceBeforeFirstField, .obsoleteLineFolding,
            .emptyFieldName, .spaceBeforeColon, .missingColon, .badFieldNameByte,
            .badFieldValueByte, .truncatedHead, .malformedContentLength, .repeatedContentLength,
            .contentLengthTooLarge, .contentLengthWithTransferEncoding,
            .malformedTransferEncoding, .unknownTransferCoding, .chunkedNotFinal,
            .repeatedChunked, .transferEncodingInHTTP10, .malformedConnection,
            .tooManyConnectionOptions, .malformedChunkSize, .chunkTooLarge,
            .malformedChunkExtension, .chunkExtensionsTooLarge, .unterminatedChunk,
            .trailersTooLarge, .tooManyTrailers, .truncatedBody:
            true
        }
    }

    /// The token, status, meaning and remedy if a client sent the bytes.
    package var requestEntry: ReasonEntry {
        ReasonEntry(
            "\(reason)", .request, status, .requestError, "\(explanation)", remedy: requestRemedy)
    }

    /// The token, status, meaning and remedy if a server sent the bytes.
    package var responseEntry: ReasonEntry {
        ReasonEntry(
            "upstream-\(reason)", .response, 502, responseErrorType, "\(explanation)",
            remedy: responseRemedy)
    }

    private var responseErrorType: ProxyErrorType {
        switch self {
        case .truncatedHead, .truncatedBody: .responseIncomplete
        case .headTooLarge, .tooManyFields: .responseHeadSize
        default: .protocolError
        }
    }

    /// What the client's side can do about it.
    private var requestRemedy: String {
        switch self {
        case .headTooLarge: "Raise `limits.headBytes` if the client's cookies are that large."
        case .tooManyFields: "Raise `limits.fields` if the client needs that many."
        case .targetTooLong, .chunkExtensionsTooLarge, .trailersTooLarge, .tooManyTrailers,
            .tooManyConnectionOptions, .methodTooLong, .contentLengthTooLarge, .chunkTooLarge:
            "The limit is fixed: correct the client."
        case .hostMissing, .hostRepeated, .malformedHost, .malformedAuthority:
            "Correct the client: the request must name exactly one host."
        case .unsupportedVersion, .malformedVersion:
            "Use a client that speaks HTTP/2, HTTP/1.1 or 1.0; the gateway "
                + "speaks TLS only on listeners that have `tls`."
        case .unsupportedScheme: "The gateway serves `http` and `https` URLs only."
        case .unknownTransferCoding:
            "Have the client send its body with Content-Length or "
                + "chunked."
        case .unknownExpectation: "Have the client send `Expect: 100-continue` or no Expect."
        case .truncatedHead, .truncatedBody: "The client went away, or its network broke."
        case .malformedRequestLine, .bareCarriageReturn, .bareLineFeed, .badTargetByte,
            .fragmentInTarget, .malformedTarget, .targetFormForbidden, .userinfoInTarget,
            .whitespaceBeforeFirstField, .obsoleteLineFolding, .emptyFieldName,
            .spaceBeforeColon, .missingColon, .badFieldNameByte, .badFieldValueByte,
            .malformedContentLength, .repeatedContentLength, .contentLengthWithTransferEncoding,
            .malformedTransferEncoding, .chunkedNotFinal, .repeatedChunked,
            .transferEncodingInHTTP10, .contentInConnect, .malformedConnection,
            .malformedMaxForwards, .repeatedMaxForwards, .malformedStatusLine, .unexpectedSwitch,
            .failedSwitch, .disguisedFieldName, .contentInTrace, .mixedLineEnds,
            .contentForbidden, .malformedChunkSize, .malformedChunkExtension,
            .unterminatedChunk:
            "Correct the client: servers interpret such a request in different ways, so it is "
                + "refused."
        }
    }

    /// What the server's side can do about it.
    private var responseRemedy: String {
        switch self {
        case .headTooLarge:
            "Raise `limits.headBytes` if the server's fields are meant to be that "
                + "large."
        case .tooManyFields: "Raise `limits.fields` if the server is meant to send that many."
        case .truncatedHead, .truncatedBody:
            "Check the server's log: the response ended too "
                + "early."
        case .trailersTooLarge, .tooManyTrailers, .chunkExtensionsTooLarge:
            "The limit is fixed: correct the server."
        default: "Correct the server: clients interpret such a response in different ways."
        }
    }
}
