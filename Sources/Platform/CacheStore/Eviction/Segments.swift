import HTTPCore

/// A table that grows at its end, in segments of equal size: growing it moves nothing, so that no
/// caller waits while millions of elements are copied.
///
/// It has one owner: a copy is of use only until one of the two changes. A debug build traps if the
/// other one is still there. (That is cheaper than to look, at each change, whether there is one,
/// as an array does: a hit in memory changes an element.)
struct Segments<Element: Sendable>: SlotStorage, @unchecked Sendable {
    private static var bits: Int { 10 }
    /// Elements of a segment.
    private static var segmentCount: Int { 1 << bits }

    /// Frees the elements.
    private final class Owner {
        var segments: ContiguousArray<UnsafeMutablePointer<Element>> = []
        var count = 0

        deinit {
            for (number, segment) in segments.enumerated() {
                let first = number * Segments.segmentCount
                segment.deinitialize(count: min(count - first, Segments.segmentCount))
                segment.deallocate()
            }
        }
    }

    private var owner = Owner()
    /// Those of the owner.
    private var segments: ContiguousArray<UnsafeMutablePointer<Element>> = []
    private(set) var count = 0

    @inline(__always)
    subscript(_ index: Int) -> Element {
        _read {
            precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
            yield segments[index &>> Self.bits][index & (Self.segmentCount - 1)]
        }
        _modify {
            precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
            assert(isKnownUniquelyReferenced(&owner))
            yield &segments[index &>> Self.bits][index & (Self.segmentCount - 1)]
        }
    }

    mutating func append(_ element: Element) {
        assert(isKnownUniquelyReferenced(&owner))
        let place = count & (Self.segmentCount - 1)
        if place == 0 {
            // Memory that is not used yet is not resident.
            let segment = UnsafeMutablePointer<Element>.allocate(capacity: Self.segmentCount)
            owner.segments.append(segment)
            segments.append(segment)
        }
        (segments[count &>> Self.bits] + place).initialize(to: element)
        count += 1
        owner.count = count
    }
}
