/// Checks JSON without converting it: checks everything that ``JSONDocument`` checks.
public enum JSONValidator {
    /// Returns if the text is JSON within the limits.
    ///
    /// - Throws: a ``DocumentError`` with line and column, and the path of what was being read.
    public static func validate(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits = .standard
    ) throws(DocumentError) {
        _ = try JSONTape.reading(bytes, limits: limits, builds: false)
    }

    /// The same for an array.
    public static func validate(
        _ bytes: [UInt8], limits: DocumentLimits = .standard
    ) throws(DocumentError) {
        try bytes.withBytes { bytes throws(DocumentError) in try validate(bytes, limits: limits) }
    }
}
