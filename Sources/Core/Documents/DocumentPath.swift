/// The path of a ``DocumentError``, put together from the outside to the inside: `orders[3].price`.
/// It is cut where it grows long, for the names come from whoever wrote the document.
package struct DocumentPath {
    /// Bytes, about: what is there when they are reached is kept whole.
    private static let maximum = 160
    /// Characters of one name.
    private static let nameMaximum = 40

    package init() {}

    package private(set) var text = ""
    /// Nothing more is added.
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
