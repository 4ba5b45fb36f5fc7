import Documents
import PinfoldConfiguration

/// What is done with the content of a response.
package struct ContentPlan: Sendable {
    /// Bytes of content, of what came (without content coding) and of what is made of it.
    package let maximumBytes: Int
    /// What is done with more.
    package let larger: LargerBodyMode
    /// Whether the content may be changed; else it is only checked.
    package var changes: Bool { steps.changes }
    /// Whether it may wait for another process: never run on an event loop's thread.
    package var isSlow: Bool { steps.image != nil }

    private let contentType: String?
    private let steps: ContentSteps

    init(
        maximumBytes: Int, larger: LargerBodyMode, contentType: String?, steps: ContentSteps
    ) {
        self.maximumBytes = maximumBytes
        self.larger = larger
        self.contentType = contentType
        self.steps = steps
    }

    /// Checks content, then changes it. What is large is for another thread than an event loop's.
    ///
    /// - Parameters:
    ///   - content: whole, without content coding.
    ///   - extent: beyond which it ends with ``TransformationProblem/responseBodyTooLarge``.
    ///   - interlude: what is done now and then meanwhile.
    package func run(
        _ content: [UInt8], _ extent: WorkExtent = .full, interlude: Interlude? = nil
    ) throws(TransformationFailure) -> PlannedContent {
        try steps.run(
            content, contentType: contentType,
            limits: extent.limits(bytes: maximumBytes, interlude))
    }
}

/// What became of content.
package struct PlannedContent: Sendable, Equatable {
    /// Nil: it is as it was.
    package var changed: TranslatedContent?
    /// The names of what changed something, for the log: `json-to-plist`, `removes-nulls`,
    /// `image/webp-to-image/png`.
    package var steps: [String] = []

    package init(changed: TranslatedContent? = nil, steps: [String] = []) {
        self.changed = changed
        self.steps = steps
    }
}
