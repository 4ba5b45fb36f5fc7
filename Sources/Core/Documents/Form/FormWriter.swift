/// Writes a dictionary as `application/x-www-form-urlencoded`, by the rules of ``QueryString``. Its
/// keys are sorted, so the whole value is kept until its end.
public struct FormWriter: DocumentSink {
    private let limits: DocumentLimits
    private let sets: Set<String>
    private let arrays: FormArrayStyle
    private var builder = DocumentBuilder()
    private var depth = 0
    private var values = 0

    /// - Parameters:
    ///   - limits: of these `depth`, `values` and `output` apply.
    ///   - sets: see ``QueryString/encode(_:sets:arrays:limits:)``.
    ///   - arrays: how the names of elements are written.
    public init(
        limits: DocumentLimits = .standard, sets: Set<String> = [],
        arrays: FormArrayStyle = .brackets
    ) {
        self.limits = limits
        self.sets = sets
        self.arrays = arrays
    }

    /// The form.
    ///
    /// - Throws: as ``QueryString/encode(_:sets:arrays:limits:)``; `malformed` if the value is
    ///   incomplete.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        guard let value = builder.value else {
            throw DocumentError(.form, .malformed("the value is incomplete"))
        }
        let form = try QueryString.encode(value, sets: sets, arrays: arrays, limits: limits)
        return Array(form.utf8)
    }

    private mutating func count() throws(DocumentError) {
        guard values < limits.values else {
            throw DocumentError(.form, .tooManyValues(maximum: limits.values))
        }
        values += 1
    }

    private mutating func enter() throws(DocumentError) {
        try count()
        guard depth < limits.depth else {
            throw DocumentError(.form, .tooDeep(maximum: limits.depth))
        }
        depth += 1
    }

    public mutating func null() throws(DocumentError) {
        try count()
        try builder.null()
    }

    public mutating func boolean(_ value: Bool) throws(DocumentError) {
        try count()
        try builder.boolean(value)
    }

    public mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try count()
        try builder.number(text)
    }

    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try count()
        try builder.string(text)
    }

    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        try count()
        try builder.data(bytes)
    }

    public mutating func date(_ seconds: Double) throws(DocumentError) {
        try count()
        try builder.date(seconds)
    }

    public mutating func beginArray() throws(DocumentError) {
        try enter()
        try builder.beginArray()
    }

    public mutating func endArray() throws(DocumentError) {
        depth -= 1
        try builder.endArray()
    }

    public mutating func beginDictionary() throws(DocumentError) {
        try enter()
        try builder.beginDictionary()
    }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try builder.key(text)
    }

    public mutating func endDictionary() throws(DocumentError) {
        depth -= 1
        try builder.endDictionary()
    }
}
