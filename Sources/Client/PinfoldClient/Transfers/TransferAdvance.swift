/// When a transfer last made progress, for those that wait for it to end. All times are the loop's
/// milliseconds.
struct TransferAdvance: Sendable {
    /// When it began, its response began, or content of known length was transferred.
    var advancedAt: Int64 = 0
    /// When content of unknown length was transferred: the server accepted it; or, in a response,
    /// it arrived after its reader had taken some of the earlier content.
    var streamedAt: Int64 = 0

    /// Returns when the transfer last made progress.
    ///
    /// - Parameter longest: How long content of unknown length counts as progress, in milliseconds
    ///   since the last certain progress, because it may never end.
    func latest(streamingAtMost longest: Int64) -> Int64 {
        max(advancedAt, min(streamedAt, advancedAt + longest))
    }
}
