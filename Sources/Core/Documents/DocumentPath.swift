/// The path of a ``DocumentError``, assembled from the outside in: `orders[3].price`. A long path
/// is truncated, because the names come from whoever wrote the document.
package struct DocumentPath {
    /// The approximate maximum in bytes: the component that exceeds it is kept whole.
    private static let maximum = 160
    /// The maximum number of characters of one name.
    private static let nameMaximum = 40

    package init() {}

    package private(set) var text = ""
    /// Whether nothing more is added.
    private(set) var isFull = false

    package mutating func append(name: String) {
        let cut = name.prefix(Self.nameMaximum)
        let rest = cut.endIndex < name.endIndex ? "…" : ""
        append((text.isEmpty ? "" : ".") + cut + rest)
    }

    package mutating func append(_ index: Int) { append("[\(index)]") }

    private mutating func append(_ step: String) {
        guard !isFull else { return }
        isFull = text.utf8.count + step.utf8.count > Self.maximum
        text += isFull ? "…" : step
    }
}
