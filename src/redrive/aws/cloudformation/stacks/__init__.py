"""Operations on stacks, change sets and templates."""
