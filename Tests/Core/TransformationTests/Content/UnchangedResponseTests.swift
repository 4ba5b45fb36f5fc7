import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("Responses that are not to be changed")
struct UnchangedResponseTests {
    private func checks(
        _ mode: NoTransformMode, _ change: (inout ResponseRules) -> Void
    ) throws -> ResponseChecks {
        let rules = rules {
            $0.noTransform = mode
            change(&$0)
        }
        return try #require(ResponseChecks(rules, schema: nil, images: FakeImages()))
    }

    @Test func `no-transform leaves content as it is, or it is refused`() throws {
        let body: (inout ResponseRules) -> Void = {
            $0.body = ResponseBodyRules(from: .json, to: .plist)
        }
        #expect(try checks(.pass, body).run("{}", "text/json", noTransform: true) == nil)
        let failure = #expect(throws: TransformationError.self) {
            try checks(.refuse, body).run("{}", "text/json", noTransform: true)
        }
        #expect(failure?.reason == .responseNoTransform)
        #expect(try checks(.refuse, body).run("{}", "text/html", noTransform: true) == nil)
    }

    @Test func `with no-transform content is still checked`() throws {
        let checks = try checks(.pass) {
            $0.validate = .json
            $0.body = ResponseBodyRules(from: .json, to: .plist)
        }
        #expect(try checks.run("{}", "text/json", noTransform: true) == PlannedContent())
        #expect(throws: TransformationError.self) {
            try checks.run("{", "text/json", noTransform: true)
        }
    }

    @Test func `with no-transform an image stays, or is refused where it would be changed`() throws
    {
        let image: (inout ResponseRules) -> Void = {
            $0.image = ImageRules()
            $0.image?.convert = [ImageConversion(from: .webp, to: .png)]
        }
        #expect(try checks(.pass, image).run("x", "image/webp", noTransform: true) == .init())
        let failure = #expect(throws: TransformationError.self) {
            try checks(.refuse, image).run("x", "image/webp", noTransform: true)
        }
        #expect(failure?.reason == .responseNoTransform)
        let unchanging = try checks(.refuse) { $0.image = ImageRules() }
        #expect(try unchanging.run("x", "image/webp", noTransform: true) == PlannedContent())
    }

    @Test(arguments: NoTransformMode.allCases)
    func `a part of what is checked is refused, of what is changed by choice`(
        mode: NoTransformMode
    ) throws {
        let translating = try checks(mode) {
            $0.body = ResponseBodyRules(from: .json, to: .plist)
        }
        let checking = try checks(mode) { $0.validate = .json }
        for checks in mode == .refuse ? [translating, checking] : [checking] {
            let failure = #expect(throws: TransformationError.self) {
                try checks.plan(contentType: "text/json", isPartial: true, noTransform: false)
            }
            #expect(failure?.reason == .responsePartial)
        }
        let unseen = try translating.plan(
            contentType: "text/html", isPartial: true, noTransform: false)
        #expect(unseen == nil)
        guard mode == .pass else { return }
        #expect(
            try translating.plan(contentType: "text/json", isPartial: true, noTransform: true)
                == nil)
    }

    @Test func `the identity is that of the rules that change bytes`() throws {
        func identity(_ change: (inout ResponseRules) -> Void) throws -> String {
            try checks(.pass) {
                $0.validate = .json
                change(&$0)
            }.identity
        }
        let changes: [(inout ResponseRules) -> Void] = [
            { _ in }, { $0.body = ResponseBodyRules(from: .json, to: .plist) },
            { $0.body = ResponseBodyRules(from: .json, to: .xml) },
            {
                $0.body = ResponseBodyRules(from: .json, to: .plist)
                $0.body?.removesKeysWithNullValues = true
            },
            {
                $0.body = ResponseBodyRules(from: .json, to: .plist)
                $0.body?.writesBinaryPropertyLists = true
            },
            {
                $0.image = ImageRules()
                $0.image?.convert = [ImageConversion(from: .webp, to: .png)]
            },
            {
                $0.image = ImageRules()
                $0.image?.convert = [ImageConversion(from: .webp, to: .jpeg)]
            },
            {
                $0.image = ImageRules()
                $0.image?.scaleTo = ImageSize(width: 1, height: 2)
            },
        ]
        let identities = try changes.map(identity)
        #expect(Set(identities).count == changes.count)
        #expect(identities.allSatisfy { $0.utf8.count == 8 })
        // The same in every process, and for rules that change nothing.
        #expect(identities[1] == "b6e46fb1")
        #expect(try identity { $0.maximumBytes = 1 } == identities[0])
    }

    @Test func `content beyond the maximum is refused by what runs, too`() throws {
        let checks = try checks(.pass) {
            $0.validate = .json
            $0.maximumBytes = 4
            $0.larger = .pass
        }
        let plan = try #require(
            try checks.plan(contentType: nil, isPartial: false, noTransform: false))
        #expect(plan.maximumBytes == 4 && plan.larger == .pass)
        #expect(try plan.run(Array("true".utf8)) == PlannedContent())
        let failure = #expect(throws: TransformationError.self) {
            try plan.run(Array("false".utf8))
        }
        #expect(failure?.reason == .responseBodyTooLarge)
    }
}
