/// A queue in an array: taking from the front and appending cost amortized constant time.
public struct FIFO<Element> {
    private var elements: [Element?] = []
    private var head = 0

    /// The minimum number of removed elements before the array is compacted: not worth it for a
    /// handful.
    private static var slack: Int { 32 }

    public init() {}

    public var count: Int { elements.count - head }
    public var isEmpty: Bool { count == 0 }
    public var first: Element? { isEmpty ? nil : elements[head] }
    public var last: Element? { isEmpty ? nil : elements[elements.count - 1] }

    public mutating func append(_ element: Element) { elements.append(element) }

    public mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[head]
        elements[head] = nil
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: head <= Self.slack)
            head = 0
        } else if head > Self.slack, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Keeps only the elements that satisfy the condition, in order. O(n).
    public mutating func keep(where isKept: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map(isKept) ?? false }
        head = 0
    }
}
