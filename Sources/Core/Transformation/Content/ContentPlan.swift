import Documents
import PinfoldConfiguration

/// What is done with the content of a response.
package struct ContentPlan: Sendable {
    /// The maximum size of content in bytes, before (without content coding) and after the changes.
    package let maximumBytes: Int
    /// What is done with larger content.
    package let larger: LargerBodyMode
    /// Whether the content may be changed; otherwise it is only checked.
    package var changes: Bool { steps.changes }
    /// Whether it may wait for another process: it must then never run on an event loop's thread.
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

    /// Checks content, then changes it. Large content must be processed on a thread other than an
    /// event loop's.
    ///
    /// - Parameters:
    ///   - content: whole, without content coding.
    ///   - extent: if exceeded, ``TransformationReason/responseBodyTooLarge`` is thrown.
    ///   - yieldPoint: called from time to time during the work.
    package func run(
        _ content: [UInt8], _ extent: WorkExtent = .full, yieldPoint: YieldPoint? = nil
    ) throws(TransformationError) -> PlannedContent {
        try steps.run(
            content, contentType: contentType,
            limits: extent.limits(bytes: maximumBytes, yieldPoint))
    }
}

/// The result for the content.
package struct PlannedContent: Sendable, Equatable {
    /// The new content; `nil` if it is unchanged.
    package var changed: TranslatedContent?
    /// The names of the steps that changed something, for the log: `json-to-plist`,
    /// `removes-nulls`, `image/webp-to-image/png`.
    package var steps: [String] = []

    package init(changed: TranslatedContent? = nil, steps: [String] = []) {
        self.changed = changed
        self.steps = steps
    }
}
