"""The layers of functions: which versions a configuration may name, and until when their archives are needed."""

from collections.abc import Collection, Sequence
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import denied, invalid
from redrive.aws.lambda_.documents.layer_records import (
    LAYER_VERSION,
    LayerReference,
    layer_of_arn,
    layer_version_key,
)
from redrive.aws.lambda_.documents.lookup import policy_text
from redrive.aws.lambda_.documents.ports import CodeKeeper
from redrive.aws.lambda_.documents.records import FUNCTION, VERSION, Configuration, LayerUse
from redrive.aws.lambda_.functions.archives import UNZIPPED_BYTES_MAX
from redrive.engine.resources import Documents, Draft

LAYERS_MAX: Final = 5


async def layers_in(draft: Draft, call: Call, arns: Sequence[str]) -> tuple[LayerUse, ...]:
    """The layers that a configuration names, which stand until the draft is written.

    Raises:
        AwsError: There are too many, one is not there, or the caller may not use it.
    """
    if len(arns) > LAYERS_MAX:
        raise invalid(f"Cannot reference more than {LAYERS_MAX} layers.")
    uses: dict[str, LayerUse] = {}
    for arn in arns:
        reference = layer_of_arn(arn)
        if reference is None:
            raise invalid(f"Layer version {arn} does not exist.")
        layer = LayerReference(reference.name).arn
        if layer in uses:
            raise invalid(
                "Two different versions of the same layer are not allowed to be referenced in the same function."
                f" {uses[layer].arn} and {arn} are versions of the same layer."
            )
        uses[layer] = await _layer_in(draft, call, reference)
    return tuple(uses.values())


async def _layer_in(draft: Draft, call: Call, reference: LayerReference) -> LayerUse:
    """A layer for a function; raises AwsError if it is elsewhere, absent or not allowed."""
    if reference.name.account == call.account and reference.name.region != call.region:
        raise invalid(
            "Layers are not in the same region as the function. Layers are expected to be in region"
            f" {call.region}."
        )
    version = await draft.get(LAYER_VERSION, layer_version_key(reference))
    policy = policy_text(version.policy) if version is not None and version.policy.statements else None
    is_allowed = call.may("lambda:GetLayerVersion", reference.arn, reference.name.account, policy)
    if not is_allowed or reference.name.region != call.region:
        raise denied(call.principal.name, "GetLayerVersion", reference.arn)
    if version is None:
        raise invalid(f"Layer version {reference.arn} does not exist.")
    return version.use


def check_unpacked(configuration: Configuration) -> None:
    """Refuse a function whose code unpacks to too much together with its layers.

    Raises:
        AwsError: `InvalidParameterValueException`.
    """
    size = configuration.unpacked_bytes + sum(layer.unpacked_bytes for layer in configuration.layers)
    if size > UNZIPPED_BYTES_MAX:
        raise invalid(
            f"Function code combined with layers exceeds the maximum allowed size of {UNZIPPED_BYTES_MAX} bytes."
            f" The actual size is {size} bytes."
        )


class LayerCode:
    """Forgets archives of layers: of versions that are deleted, once no function uses them any more."""

    def __init__(self, documents: Documents, code: CodeKeeper) -> None:
        self._documents = documents
        self._code = code

    async def forget_unused(self, layers: Collection[LayerUse]) -> None:
        """Forget the archives of those layer versions that are deleted and in no function's configuration.

        A version that is deleted is in no configuration that is written from then on (`layers_in`), so one that is
        unused now stays so.
        """
        deleted_layers = {layer.arn: layer for layer in layers if not await self._exists(layer)}
        if not deleted_layers:
            return
        functions = await self._documents.find(FUNCTION, "")
        configurations = [function.latest for function in functions]
        configurations += await self._documents.find(VERSION, "")
        used_arns = {layer.arn for configuration in configurations for layer in configuration.layers}
        for layer in [deleted_layers[arn] for arn in deleted_layers.keys() - used_arns]:
            await self._code.forget(layer.archive, [layer.code])

    async def _exists(self, layer: LayerUse) -> bool:
        reference = layer_of_arn(layer.arn)
        return (
            reference is not None
            and await self._documents.get(LAYER_VERSION, layer_version_key(reference)) is not None
        )
