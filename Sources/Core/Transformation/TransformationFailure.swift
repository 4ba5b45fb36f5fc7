/// Why a message's content, or its head, is refused by the rules of its route.
package struct TransformationFailure: Error, Sendable, Equatable {
    package var problem: TransformationProblem
    /// What was wrong, and what was expected: a clause that begins in lower case, without anything
    /// of the content.
    package var detail: String
    /// Where in the content: `line 3, column 14` or `byte 17`, and the path where there is one
    /// (`at $.items[2].name`); nil: nowhere in particular.
    package var place: String?
    /// The content around the place, at most ``maximumExcerptBytes``; empty: nothing to show.
    package var excerpt: [UInt8] = []

    package static let maximumExcerptBytes = 200

    package init(
        _ problem: TransformationProblem, _ detail: String, at place: String? = nil,
        excerpt: [UInt8] = []
    ) {
        self.problem = problem
        self.detail = detail
        self.place = place
        self.excerpt = Array(excerpt.prefix(Self.maximumExcerptBytes))
    }
}

/// The kinds of refusal: each is a reason of the gateway's.
package enum TransformationProblem: String, Sendable, CaseIterable {
    // Requests: the client is told 4xx.
    /// The content is not what its type, or the route, says.
    case requestBodyInvalid = "request-body-invalid"
    /// The content says something that the other format cannot.
    case requestBodyUntranslatable = "request-body-untranslatable"
    case requestBodyTooLarge = "request-body-too-large"
    /// A part of multipart content is a file that is named and not sent, or a file where only
    /// values can be.
    case requestFileRefused = "request-file-refused"
    /// A content coding that cannot be undone.
    case requestCodingUnknown = "request-coding-unknown"
    case requestNoTransform = "request-no-transform"
    /// What the rules make of the request's head is no request.
    case requestHeadInvalid = "request-head-unwritable"
    /// Credentials of the gateway's would go out in clear text.
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
    /// A part of a representation, which can be neither checked nor changed.
    case responsePartial = "response-partial"
    // The gateway itself: 503.
    /// Too much work of this kind waits.
    case overloaded = "transformation-overloaded"
}
