import HTTP2
import HTTPCore

extension MessageError {
    /// The same error in a message over HTTP/1, whose reason it then has; `nil` if that version has
    /// none.
    package var wireError: WireError? {
        switch self {
        case .emptyFieldName: .emptyFieldName
        case .badFieldNameByte: .badFieldNameByte
        case .badFieldValueByte: .badFieldValueByte
        case .methodTooLong: .methodTooLong
        case .unsupportedScheme: .unsupportedScheme
        case .badPathByte: .badTargetByte
        case .fragmentInPath: .fragmentInTarget
        case .targetTooLong: .targetTooLong
        case .userinfoInAuthority: .userinfoInTarget
        case .malformedAuthority: .malformedAuthority
        case .hostRepeated: .hostRepeated
        case .malformedContentLength: .malformedContentLength
        case .repeatedContentLength: .repeatedContentLength
        case .contentLengthTooLarge: .contentLengthTooLarge
        case .contentLengthWithoutContent: .truncatedBody
        case .headTooLarge: .headTooLarge
        case .tooManyFields: .tooManyFields
        case .trailersTooLarge: .trailersTooLarge
        case .tooManyTrailers: .tooManyTrailers
        case .capitalInFieldName, .whitespaceAroundValue, .connectionField, .forbiddenTE,
            .unknownPseudoField, .misplacedPseudoField, .repeatedPseudoField, .latePseudoField,
            .pseudoFieldInTrailers, .methodMissing, .malformedMethod, .schemeMissing,
            .schemeMismatch, .pathMissing, .emptyPath, .malformedPath, .asteriskForbidden,
            .authorityMissing, .emptyAuthority, .hostMismatch, .pseudoFieldInConnect,
            .protocolWithoutConnect, .malformedProtocol, .unsupportedProtocol, .statusMissing,
            .malformedStatus, .switchingProtocols, .interimEndsStream, .forbiddenTrailer:
            nil
        }
    }

    /// Whether a client's message can have it.
    package var isOfRequests: Bool {
        switch self {
        case .statusMissing, .malformedStatus, .switchingProtocols, .interimEndsStream: false
        default: true
        }
    }

    /// The token, status, meaning and remedy if a client sent the fields.
    package var requestEntry: ReasonEntry {
        if let wireError { return wireError.requestEntry }
        return ReasonEntry(
            "\(reason)", .request, status, .requestError, "\(explanation)",
            remedy: "Correct the client: HTTP/2 forbids it (RFC 9113 §8).")
    }
}
