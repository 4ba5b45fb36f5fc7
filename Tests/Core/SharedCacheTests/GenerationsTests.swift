import TestSupport
import Testing

@testable import SharedCache

private let resource = SharedResource(
    uri: Array("https://a.example.com/x".utf8), tags: [Array("t".utf8)])

private func mark(
    _ pattern: PurgePattern = .everything, isSoft: Bool = false, seconds: Int64 = 50,
    at milliseconds: UInt64, epoch: UInt64 = 1
) -> PurgeMark {
    PurgeMark(
        pattern, isSoft: isSoft, seconds: seconds,
        at: Sample.position(milliseconds, epoch: epoch))
}

private func generations(
    floor: UInt64 = 0, epoch: UInt64 = 1, _ marks: PurgeMark...
) -> Result<Generations, GenerationError> {
    .success(Generations(floor: Sample.position(floor, epoch: epoch), marks: marks))
}

private let other = PurgePattern.key(Array("https://a.example.com/y".utf8))

/// Generations, and what they make of a response that was born at 10.
private let verdicts: [([Result<Generations, GenerationError>], GenerationVerdict)] = [
    ([], .current),
    ([generations()], .current),
    ([generations(floor: 10)], .current),
    ([generations(floor: 11)], .unknown(.olderThanRecord)),
    ([generations(epoch: 2)], .unknown(.otherEpoch)),
    ([.failure(.missing)], .unknown(.missing)),
    ([generations(), .failure(.tooLong)], .unknown(.tooLong)),
    ([generations(mark(at: 10))], .current),
    ([generations(mark(at: 11))], .gone),
    ([generations(mark(isSoft: true, at: 11))], .stale(since: 50)),
    ([generations(mark(isSoft: true, at: 10))], .current),
    ([generations(mark(other, at: 11))], .current),
    ([generations(mark(at: 11, epoch: 2))], .unknown(.otherEpoch)),
    ([generations(mark(isSoft: true, at: 11), mark(at: 5))], .stale(since: 50)),
    ([generations(mark(isSoft: true, at: 5), mark(at: 11))], .gone),
    (
        [
            generations(mark(isSoft: true, seconds: 60, at: 12)),
            generations(mark(isSoft: true, seconds: 55, at: 13)),
        ], .stale(since: 55)
    ),
    ([.failure(.missing), generations(mark(at: 11))], .gone),
    ([generations(mark(at: 11)), .failure(.missing)], .gone),
    ([generations(mark(isSoft: true, at: 11)), .failure(.missing)], .unknown(.missing)),
    ([.failure(.missing), generations(mark(isSoft: true, at: 11))], .unknown(.missing)),
    ([generations(floor: 11, mark(at: 12))], .gone),
]

@Suite("Generations")
struct GenerationsTests {
    @Test func `say what purges make of a response`() {
        for (known, verdict) in verdicts {
            #expect(
                GenerationVerdict(of: resource, born: Sample.position(10), by: known) == verdict,
                "\(known)")
        }
    }

    /// Compared with all purges, of which the records are made as a gateway and the engine do.
    @Test func `never let a purged response be used, whatever is evicted`() throws {
        var random = SeededRandom(seed: 17)
        let patterns: [PurgePattern] = [
            .everything, .host(.exact, name: Array("a.example.com".utf8), port: nil),
            .host(.anyDepth, name: Array("example.com".utf8), port: nil),
            .tag(Array("t".utf8), origin: nil), .prefix(Array("https://a.example.com/".utf8)),
            .key(resource.uri), other, .tag(Array("u".utf8), origin: nil),
        ]
        var verdicts: Set<Int> = []
        for _ in 0..<3000 {
            var records: [GenerationScope: Generations] = [:]
            var purges: [PurgeMark] = []
            var born = Sample.position(0)
            for now in 1...UInt64(3 + random.below(12)) {
                switch random.below(10) {
                // A purge raises a mark, and begins the record if there is none.
                case 0..<4:
                    let purge = mark(
                        random.pick(patterns), isSoft: random.chance(40),
                        seconds: Int64(now), at: now)
                    purges.append(purge)
                    let scope = purge.pattern.scope
                    let old = records[scope]
                    let others = (old?.marks ?? []).filter {
                        $0.pattern != purge.pattern || $0.isSoft != purge.isSoft
                    }
                    records[scope] = Generations(
                        floor: old?.floor ?? purge.position, marks: others + [purge])
                // A response is stored: records that are not there begin.
                case 4..<7:
                    born = Sample.position(now)
                    for scope in resource.scopes where records[scope] == nil {
                        records[scope] = Generations(floor: born, marks: [])
                    }
                // A record is evicted.
                default: records[random.pick(resource.scopes)] = nil
                }
            }
            let verdict = GenerationVerdict(
                of: resource, born: born,
                by: resource.scopes.map { scope in
                    records[scope].map { .success($0) } ?? .failure(.missing)
                })
            let later = purges.filter {
                $0.pattern.matches(resource) && born.isBefore($0.position) == true
            }
            switch verdict {
            case .current: #expect(later.isEmpty)
            case .stale: #expect(!later.isEmpty && later.allSatisfy(\.isSoft))
            case .unknown: break
            case .gone: #expect(later.contains { !$0.isSoft })
            }
            switch verdict {
            case .current: verdicts.insert(0)
            case .stale: verdicts.insert(1)
            case .unknown: verdicts.insert(2)
            case .gone: verdicts.insert(3)
            }
        }
        #expect(verdicts.count == 4)
    }

    private func fields(
        _ marks: [PurgeMark], floor: UInt64? = 3, by keyring: SharedKeyring
    ) throws -> [(field: [UInt8], value: [UInt8])] {
        var fields = try marks.map {
            (
                field: try #require($0.field),
                value: try #require($0.value(under: Sample.name, by: keyring))
            )
        }
        if let floor {
            let value = Generations.floorValue(
                Sample.position(floor), under: Sample.name, by: keyring)
            fields.append((Generations.floorField, try #require(value)))
        }
        return fields
    }

    @Test func `are read as they were written, in any order`() throws {
        let keyring = try Sample.keyring(1)
        let marks = [
            mark(at: 5), mark(isSoft: true, at: 6),
            mark(.tag(Array("t".utf8), origin: nil), at: 7),
        ]
        let all = try fields(marks, by: keyring)
        #expect(Set(all.map(\.field)).count == 4)
        for order in [all, all.reversed()] {
            let read = try Generations(order, under: Sample.name, by: keyring)
            #expect(read.floor == Sample.position(3))
            #expect(Set(read.marks) == Set(marks))
        }
    }

    @Test func `are not known without a floor, without anything, and if there are too many`()
        throws
    {
        let keyring = try Sample.keyring(1)
        func error(_ fields: [(field: [UInt8], value: [UInt8])]) -> GenerationError? {
            do throws(GenerationError) {
                _ = try Generations(fields, under: Sample.name, by: keyring)
                return nil
            } catch {
                return error
            }
        }
        #expect(error([]) == .missing)
        #expect(error(try fields([mark(at: 5)], floor: nil, by: keyring)) == .missing)
        let many = try fields(
            (0..<Generations.maximumMarks).map {
                mark(.key(Array("https://a/\($0)".utf8)), at: 5)
            }, by: keyring)
        #expect(error(many) == nil)
        #expect(error(many + [many[0]]) == .tooLong)
        // Of another record, of another field, and of no field.
        let good = try fields([mark(at: 5), mark(isSoft: true, at: 6)], by: keyring)
        #expect(error(good) == nil)
        var moved = good
        (moved[0].value, moved[1].value) = (moved[1].value, moved[0].value)
        #expect(error(moved) == .unreadable(.wrongCode))
        #expect(error(good + [(Array("x".utf8), good[0].value)]) == .unreadable(.wrongCode))
        #expect(error(good + [(Array("x".utf8), [])]) == .unreadable(.wrongLength))
    }

    @Test func `are refused with any bit changed, or cut`() throws {
        let keyring = try Sample.keyring(1)
        let good = try fields([mark(at: 5)], by: keyring)
        for index in good.indices {
            for place in good[index].value.indices {
                for bit in 0..<8 {
                    var fields = good
                    fields[index].value[place] ^= 1 << bit
                    #expect(throws: GenerationError.self, "\(index) \(place) \(bit)") {
                        try Generations(fields, under: Sample.name, by: keyring)
                    }
                }
                var fields = good
                fields[index].value = Array(good[index].value[..<place])
                #expect(throws: GenerationError.self, "\(index) \(place)") {
                    try Generations(fields, under: Sample.name, by: keyring)
                }
            }
        }
    }
}
