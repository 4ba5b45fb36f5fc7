import PinfoldConfiguration

@testable import Transformation

/// Converts by the first rule, scales if a size is requested, and refuses what begins with `!`.
struct FakeImages: ImageTransforming {
    func transform(
        _ image: [UInt8], by rules: ImageRules
    ) throws(TransformationError) -> TranslatedContent? {
        guard image.first != UInt8(ascii: "!") else {
            throw TransformationError(.responseImageRefused, "it is no image")
        }
        if let conversion = rules.convert.first {
            return TranslatedContent(bytes: [1], contentType: conversion.to.rawValue)
        }
        return rules.scaleTo.map { _ in TranslatedContent(bytes: [2], contentType: "image/png") }
    }
}

func rules(_ change: (inout ResponseRules) -> Void) -> ResponseRules {
    var rules = ResponseRules()
    change(&rules)
    return rules
}

extension ResponseChecks {
    /// The result for whole content; `nil` if it passes unexamined.
    func run(
        _ content: String, _ type: String?, noTransform: Bool = false
    ) throws(TransformationError) -> PlannedContent? {
        try plan(contentType: type, isPartial: false, noTransform: noTransform)?
            .run(Array(content.utf8))
    }
}

extension PlannedContent {
    var text: String? { changed.map { String(decoding: $0.bytes, as: UTF8.self) } }
}
