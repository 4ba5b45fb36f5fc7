/// Why a message's content, or its head, is refused by the rules of its route.
package struct TransformationError: Error, Sendable, Equatable {
    package var reason: TransformationReason
    /// What was wrong, and what was expected: a clause that begins in lower case and contains
    /// nothing of the content.
    package var detail: String
    /// The position in the content: `line 3, column 14` or `byte 17`, and the path if there is one
    /// (`at $.items[2].name`); `nil` if there is none.
    package var location: String?
    /// The content around the position, at most ``maximumExcerptBytes``; empty if there is nothing
    /// to show.
    package var excerpt: [UInt8] = []

    package static let maximumExcerptBytes = 200

    package init(
        _ reason: TransformationReason, _ detail: String, at location: String? = nil,
        excerpt: [UInt8] = []
    ) {
        self.reason = reason
        self.detail = detail
        self.location = location
        self.excerpt = Array(excerpt.prefix(Self.maximumExcerptBytes))
    }
}

/// The kinds of refusal: each is one of the gateway's reasons.
package enum TransformationReason: String, Sendable, CaseIterable {
    // Requests: the client receives a 4xx.
    /// The content is not what its type, or the route, requires.
    case requestBodyInvalid = "request-body-invalid"
    /// The content cannot be expressed in the other format.
    case requestBodyUntranslatable = "request-body-untranslatable"
    case requestBodyTooLarge = "request-body-too-large"
    /// A part of multipart content refers to a file that is not sent, or is a file where only
    /// values are possible.
    case requestFileRefused = "request-file-refused"
    /// A content coding that cannot be decoded.
    case requestCodingUnknown = "request-coding-unknown"
    case requestNoTransform = "request-no-transform"
    /// The request's head is invalid after the rules were applied.
    case requestHeadInvalid = "request-head-unwritable"
    /// The gateway's credentials would be sent in clear text.
    case authorizationInClearText = "authorization-in-clear-text"
    // Responses: 502.
    case responseStatusRefused = "response-status-refused"
    case responseTypeRefused = "response-type-refused"
    case responseBodyInvalid = "response-body-invalid"
    case responseBodyUntranslatable = "response-body-untranslatable"
    case responseBodyTooLarge = "response-body-too-large"
    /// The content does not satisfy the schema.
    case responseSchemaViolated = "response-schema-violated"
    case responseCodingUnknown = "response-coding-unknown"
    case responseImageRefused = "response-image-refused"
    case responseNoTransform = "response-no-transform"
    /// Part of a representation, which can be neither checked nor changed.
    case responsePartial = "response-partial"
    // The gateway itself: 503.
    /// Too much work of this kind is waiting.
    case overloaded = "transformation-overloaded"
}
